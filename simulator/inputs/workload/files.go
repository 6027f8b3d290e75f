package workload

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// filesOf is the file itself, or the files of a folder that hold objects, sorted by name.
func filesOf(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, unreadable(path, err)
	}
	var files []string
	for _, entry := range entries {
		holdsObjects := slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(entry.Name()))
		if !entry.IsDir() && holdsObjects {
			files = append(files, filepath.Join(path, entry.Name()))
		}
	}
	if len(files) == 0 {
		return nil, badinput.At(
			path,
			0,
			"the folder holds no *.yaml, *.yml or *.json",
			"name a file, or a folder with some",
		)
	}
	return files, nil
}

func unreadable(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return badinput.At(path, 0, "there is no such file or folder", "check the path")
	}
	return badinput.At(path, 0, "it cannot be read: "+errors.Unwrap(err).Error(), "make it readable")
}
