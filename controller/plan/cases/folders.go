package cases

import (
	"fmt"
	"os"
	"path/filepath"
)

// Unpack writes every part of every case, whole, as out/CASE/PART: the input form for Kubeflow Trainer, in which a
// rendering can also be read in one piece. Parts that do not fit are left out.
func (s *Set) Unpack(out string) error {
	for _, c := range s.All() {
		folder := filepath.Join(out, c.Name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
		for _, name := range c.Parts("") {
			text, ok := c.Text(name)
			if !ok {
				continue
			}
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				return fmt.Errorf("writing a part: %w", err)
			}
		}
	}
	return nil
}

// TakeAnswers replaces upstream's answers of every case by the files upstream* of folder/CASE.
func (s *Set) TakeAnswers(folder string) error {
	for _, c := range s.All() {
		files, err := filepath.Glob(filepath.Join(folder, c.Name, "upstream*"))
		if err != nil || len(files) == 0 {
			return fmt.Errorf("no answer: there is no file %s", filepath.Join(folder, c.Name, "upstream*"))
		}
		old := map[string]bool{}
		for _, name := range c.Parts("upstream") {
			old[name] = true
		}
		for _, file := range files {
			name := filepath.Base(file)
			text, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("reading an answer: %w", err)
			}
			if err := check(name); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			c.Set(name, string(text))
			delete(old, name)
		}
		for name := range old {
			c.Remove(name)
		}
	}
	return nil
}
