// Command prose fails if comments, messages or pages of folders use phrases that the house replaces, and prints one
// line for each.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lockstep-project/lockstep/simulator/checks/prose"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: prose FOLDER|FILE...")
		os.Exit(2)
	}
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

var errFindings = errors.New("findings")

func run(folders []string, out io.Writer) error {
	count := 0
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil {
				return fmt.Errorf("reading %s: %w", path, err)
			}
			if entry.IsDir() {
				if entry.Name() == "testdata" || entry.Name() == "node_modules" {
					return fs.SkipDir
				}
				return nil
			}
			n, err := check(path, out)
			count += n
			return err
		})
		if err != nil {
			return err //nolint:wrapcheck // the walk returns errors of the function above, which has said where
		}
	}
	if count > 0 {
		return fmt.Errorf("%d %w: mend the lines above", count, errFindings)
	}
	return nil
}

// check prints the findings of a file, and returns their number.
func check(path string, out io.Writer) (int, error) {
	switch filepath.Ext(path) {
	case ".go", ".sh", ".yaml", ".yml", ".md":
	default:
		return 0, nil
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", path, err)
	}
	found, err := prose.Check(path, source)
	if err != nil {
		return 0, err
	}
	for _, f := range found {
		if _, err := fmt.Fprintln(out, f); err != nil {
			return 0, fmt.Errorf("printing: %w", err)
		}
	}
	return len(found), nil
}
