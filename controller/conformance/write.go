package conformance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Write asks upstream about each folder of cases, and writes its answers into the folder of the same name below out.
// Files of an earlier run are replaced.
func Write(ctx context.Context, cases, out string) error {
	folders, err := filepath.Glob(filepath.Join(cases, "*", "trainjob.yaml"))
	if err != nil || len(folders) == 0 {
		return fmt.Errorf("no */trainjob.yaml in the folder of cases %q", cases)
	}
	for _, file := range folders {
		folder := filepath.Dir(file)
		scene, err := read(folder)
		if err != nil {
			return fmt.Errorf("case %s: %w", folder, err)
		}
		answers, err := scene.answers(ctx)
		if err != nil {
			return fmt.Errorf("case %s: %w", folder, err)
		}
		if err = write(filepath.Join(out, filepath.Base(folder)), answers); err != nil {
			return fmt.Errorf("case %s: %w", folder, err)
		}
	}
	return nil
}

// write writes the answers: upstream.yaml, or upstream-error.txt for a refusal, numbered from the second one on. Files
// of an earlier run are removed.
func write(folder string, answers []answer) error {
	old, err := filepath.Glob(filepath.Join(folder, "upstream*"))
	if err != nil {
		return fmt.Errorf("looking for old answers: %w", err)
	}
	for _, file := range old {
		if err = os.Remove(file); err != nil {
			return fmt.Errorf("removing an old answer: %w", err)
		}
	}
	if err = os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	for i, one := range answers {
		name, ending := "upstream", ".yaml"
		if one.refused {
			name, ending = "upstream-error", ".txt"
		}
		if i > 0 {
			name += fmt.Sprintf("-%d", i+1)
		}
		if err = os.WriteFile(filepath.Join(folder, name+ending), []byte(one.text), 0o644); err != nil {
			return fmt.Errorf("writing an answer: %w", err)
		}
	}
	return nil
}
