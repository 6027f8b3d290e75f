package upgrade_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/cluster"
)

// release is an executable of lockstep-controller, and the folder with its manifests.
type release struct {
	name, executable, manifests string
}

// added is the environment variable that the next release sets in torch's containers.
const added = "LOCKSTEP_NEXT_RELEASE"

// previousRelease builds the release of the commit that the flag names. Without one the test is skipped.
func previousRelease(t *testing.T) release {
	t.Helper()
	if *previous == "" {
		t.Skip("needs -args -previous COMMIT; make test-full has it")
	}
	tree := checkedOut(t, sourceTree(t), *previous)
	return release{*previous, filepath.Join(tree, "previous"), manifestsIn(tree)}
}

// thisRelease builds the release of this source tree.
func thisRelease(t *testing.T) release {
	t.Helper()
	binaries, err := cluster.Build(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return release{"this", binaries.Controller, manifestsIn(sourceTree(t))}
}

// nextRelease builds the controller of this source tree with another renderer, and changes no file of the tree.
func nextRelease(t *testing.T) release {
	t.Helper()
	root, dir := sourceTree(t), t.TempDir()
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, edit := range map[string][2]string{
		"controller/framework/torch.go": {"rank(torchRank),", "rank(torchRank), text(\"" + added + "\", \"1\"),"},
		"controller/plan/frozen.go":     {"const Renderer = ", "const Renderer = 1000 + "},
	} {
		content, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(content), edit[0]) != 1 {
			t.Fatalf("%s: %q must occur once; change the edit of this test to fit the renderer", path, edit[0])
		}
		edited := filepath.Join(dir, filepath.Base(path))
		next := strings.Replace(string(content), edit[0], edit[1], 1)
		if err := os.WriteFile(edited, []byte(next), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(root, path)] = edited
	}
	content, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	file, executable := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "next")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "-C", root, "build", "-p", "2", "-overlay", file, "-o", executable,
		"./controller/cmd/lockstep-controller")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the next release: %v\n%s", err, out)
	}
	return release{"next", executable, manifestsIn(root)}
}

func manifestsIn(tree string) string { return filepath.Join(tree, "manifests", "controller") }

func sourceTree(t *testing.T) string {
	t.Helper()
	root, err := cluster.SourceTree()
	if err != nil {
		t.Fatal(err)
	}
	return root
}
