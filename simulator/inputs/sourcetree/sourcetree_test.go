package sourcetree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

func TestRoot_IsAboveTheWorkingDirectory(t *testing.T) {
	root, err := sourcetree.Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "simulator", "inputs", "sourcetree")); err != nil {
		t.Error(err)
	}
	t.Chdir(t.TempDir())
	if root, err := sourcetree.Root(); !badinput.Is(err) {
		t.Errorf("outside of it, it is %q, %v", root, err)
	}
}
