package capture

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// Save writes a file by a function that is given the writer, and compresses it if its name ends in .gz. In the end the
// name has the whole new file, or the previous content. Only its owner may read it.
func Save(path string, write func(dir string, out io.Writer) error) error {
	return save(path, 0o600, write)
}

// Publish is Save for files that all users may read, because they contain nothing of a cluster.
func Publish(path string, write func(out io.Writer) error) error {
	return save(path, 0o644, func(_ string, out io.Writer) error { return write(out) })
}

// save is Save for the users that the mode names.
func save(path string, mode os.FileMode, write func(dir string, out io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	if found, err := os.Stat(path); err == nil && found.IsDir() {
		return &badinput.Error{Where: "-o " + path, What: "it is a directory", Mend: "name a file"}
	}
	file, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return &badinput.Error{
			Where: "-o " + path, What: "the file cannot be made: " + err.Error(),
			Mend: "name a file in a directory that you may write to",
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, discard(file))
		}
	}()
	if err := compressed(path, file, func(out io.Writer) error { return write(dir, out) }); err != nil {
		return err
	}
	if err := errors.Join(file.Chmod(mode), file.Sync()); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// compressed lets a function write to a file through gzip, if the file's name asks for it.
func compressed(path string, file io.Writer, write func(io.Writer) error) error {
	if !strings.HasSuffix(path, ".gz") {
		return write(file)
	}
	packed := gzip.NewWriter(file)
	if err := write(packed); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return fmt.Errorf("compressing %s: %w", path, err)
	}
	return nil
}

// discard removes a file that was not finished.
func discard(file *os.File) error {
	_ = file.Close() // it may be closed already, and is removed in any case
	if err := os.Remove(file.Name()); err != nil {
		return fmt.Errorf("removing an unfinished file: %w", err)
	}
	return nil
}

// ReadFile reads the snapshot in a file, compressed or not: one of ours, as Read does, or Kubernetes objects, as
// ReadObjects does. A file that cannot be read is bad input.
func ReadFile(path string) (Snapshot, error) {
	file, err := os.Open(path)
	if err != nil {
		return Snapshot{}, &badinput.Error{Where: path, What: "it cannot be read: " + err.Error()}
	}
	snapshot, err := readAny(file, path)
	_ = file.Close() // it was only read
	return snapshot, err
}
