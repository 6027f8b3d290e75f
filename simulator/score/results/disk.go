package results

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Disk stores results. Names are paths as the operating system has them.
type Disk interface {
	// List returns the names in a directory: nil for one that is not there.
	List(dir string) ([]string, error)
	// Make makes a directory and those above it.
	Make(dir string) error
	// Create makes a file or empties it; its content is safe once Close has returned without an error.
	Create(name string) (io.WriteCloser, error)
	Open(name string) (io.ReadCloser, error)
	// Rename puts a file in the place of another at once: no reader finds neither of them, or half of one.
	Rename(from, to string) error
	// Remove is no error for a file that is not there.
	Remove(name string) error
}

// files is the disk of this machine.
type files struct{}

func (files) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing: %w", err)
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names, nil
}

func (files) Make(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making a directory: %w", err)
	}
	return nil
}

func (files) Create(name string) (io.WriteCloser, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, fmt.Errorf("creating: %w", err)
	}
	return synced{f}, nil
}

func (files) Open(name string) (io.ReadCloser, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("opening: %w", err)
	}
	return f, nil
}

func (files) Rename(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("renaming: %w", err)
	}
	return nil
}

func (files) Remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing: %w", err)
	}
	return nil
}

// synced is a file whose Close reports an error that the system would otherwise only notice later: that the disk was
// full.
type synced struct{ *os.File }

func (s synced) Close() error {
	err := s.Sync()
	return errors.Join(err, s.File.Close())
}

// WriteError is a result that could not be written. The directory stays marked as partial.
type WriteError struct {
	// File is the one that could not be written.
	File string
	Err  error
}

// Error names the file, and the remedy.
func (e *WriteError) Error() string {
	mend := "see to it that the directory can be written, or give another one with --out"
	if errors.Is(e.Err, syscall.ENOSPC) || errors.Is(e.Err, syscall.EDQUOT) {
		mend = "make room, or give another directory with --out"
	}
	return fmt.Sprintf("cannot write %s: %v; %s. What was written is marked as partial", e.File, e.Err, mend)
}

// Unwrap returns the system's error.
func (e *WriteError) Unwrap() error { return e.Err }
