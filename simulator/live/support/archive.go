package support

import (
	"archive/tar"
	"fmt"
	"io"
	"path"
	"time"
)

// Write writes a bundle as a tar archive, below one folder.
func (b *Bundle) Write(out io.Writer, folder string, at time.Time) error {
	archive := tar.NewWriter(out)
	for _, part := range b.Parts {
		header := &tar.Header{
			Name: path.Join(
				folder,
				part.Name,
			),
			Mode:    0o600,
			Size:    int64(len(part.Content)),
			ModTime: at,
			Format:  tar.FormatPAX,
		}
		err := archive.WriteHeader(header)
		if err == nil {
			_, err = archive.Write(part.Content)
		}
		if err != nil {
			return fmt.Errorf("writing %s: %w", part.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	return nil
}
