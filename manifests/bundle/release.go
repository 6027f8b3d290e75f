package bundle

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Notes returns the section of a changelog that belongs to a tag: the text below its heading "## TAG", with or without
// a date behind the tag.
func Notes(changelog, tag string) (string, error) {
	var notes strings.Builder
	within := false
	for line := range strings.Lines(changelog) {
		if heading, is := strings.CutPrefix(line, "## "); is {
			name, _, _ := strings.Cut(strings.TrimSpace(heading), " ")
			within = name == tag
			continue
		}
		if within {
			notes.WriteString(line)
		}
	}
	if text := strings.TrimSpace(notes.String()); text != "" {
		return text + "\n", nil
	}
	return "", fmt.Errorf(
		"the changelog has no section \"## %s\"; give what is below \"## Unreleased\" that heading",
		tag,
	)
}

// Programs writes a compressed tar archive of files below one folder that is called name. All have one time, and no
// mode but 0755 or 0644, so equal files make equal archives.
func Programs(out io.Writer, name string, files []string, at time.Time) error {
	compressed := gzip.NewWriter(out)
	to := tar.NewWriter(compressed)
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading what goes into the archive: %w", err)
		}
		mode, err := modeOf(file)
		if err != nil {
			return err
		}
		header := &tar.Header{
			Name: path.Join(
				name,
				filepath.Base(file),
			),
			Mode:    mode,
			Size:    int64(len(content)),
			ModTime: at,
			Format:  tar.FormatPAX,
		}
		if err = to.WriteHeader(header); err == nil {
			_, err = to.Write(content)
		}
		if err != nil {
			return fmt.Errorf("writing %s into the archive: %w", header.Name, err)
		}
	}
	if err := to.Close(); err != nil {
		return fmt.Errorf("ending the archive: %w", err)
	}
	if err := compressed.Close(); err != nil {
		return fmt.Errorf("compressing the archive: %w", err)
	}
	return nil
}

// modeOf returns the mode of a file in an archive, where the umask of a machine makes no difference.
func modeOf(file string) (int64, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, fmt.Errorf("reading the mode of what goes into the archive: %w", err)
	}
	if info.Mode()&0o100 != 0 {
		return 0o755, nil
	}
	return 0o644, nil
}

// Sum writes SHA256SUMS of the other files of a folder into it, in the order of their names.
func Sum(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("listing the release: %w", err)
	}
	var lines []string
	for _, entry := range entries {
		if entry.IsDir() || entry.Name() == sums {
			continue
		}
		sum, err := sumOf(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		lines = append(lines, sum+"  "+entry.Name()+"\n")
	}
	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[sha256.Size*2:], b[sha256.Size*2:]) })
	if err := os.WriteFile(filepath.Join(dir, sums), []byte(strings.Join(lines, "")), 0o644); err != nil {
		return fmt.Errorf("writing the sums: %w", err)
	}
	return nil
}

func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("summing up: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("summing up %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
