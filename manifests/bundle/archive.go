package bundle

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// sums is the file of an archive by which sha256sum -c checks the others.
const sums = "SHA256SUMS"

// Archive writes a tar archive of a packed chart and of the images' layouts, below one folder that is called name: the
// chart's file, images/COMMAND and SHA256SUMS. Layers are compressed already, so the archive is not. All files have one
// time.
func Archive(out io.Writer, name, chart, layouts string, at time.Time) error {
	to := tar.NewWriter(out)
	var checks strings.Builder
	add := func(file, as string) error {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading what goes into the bundle: %w", err)
		}
		sum := sha256.Sum256(content)
		fmt.Fprintf(&checks, "%s  %s\n", hex.EncodeToString(sum[:]), as)
		return write(to, path.Join(name, as), content, at)
	}
	if err := add(chart, filepath.Base(chart)); err != nil {
		return err
	}
	err := filepath.WalkDir(layouts, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		below, err := filepath.Rel(layouts, file)
		if err != nil {
			return err //nolint:wrapcheck // it cannot happen below the folder that is walked
		}
		return add(file, path.Join("images", filepath.ToSlash(below)))
	})
	if err != nil {
		return fmt.Errorf("adding the images: %w", err)
	}
	if err := write(to, path.Join(name, sums), []byte(checks.String()), at); err != nil {
		return err
	}
	if err := to.Close(); err != nil {
		return fmt.Errorf("ending the bundle: %w", err)
	}
	return nil
}

func write(to *tar.Writer, name string, content []byte, at time.Time) error {
	header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(content)), ModTime: at, Format: tar.FormatPAX}
	err := to.WriteHeader(header)
	if err == nil {
		_, err = to.Write(content)
	}
	if err != nil {
		return fmt.Errorf("writing %s into the bundle: %w", name, err)
	}
	return nil
}
