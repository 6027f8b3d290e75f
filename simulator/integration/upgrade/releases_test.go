package upgrade_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// release is a release of Lockstep, with its name in transcripts.
type release struct {
	name string
	cluster.Release
}

// added is the environment variable that the next release sets in torch's containers.
const added = "LOCKSTEP_NEXT_RELEASE"

// previousRelease builds the release of the commit that the flag names, once. Without one the test is skipped.
func previousRelease(t *testing.T) release {
	t.Helper()
	if *previous == "" {
		t.Skip("needs -args -previous COMMIT; make test-full has it")
	}
	tree := filepath.Join(shared.Dir(), "previous")
	if _, err := os.Stat(filepath.Join(tree, "bin")); err != nil {
		checkOut(t, *previous, tree)
	}
	return release{*previous, installed(t, tree, cluster.Release{
		Controller: filepath.Join(tree, "bin", "lockstep-controller"),
		Scheduler:  filepath.Join(tree, "bin", "lockstep-scheduler"),
	})}
}

// installed adds to a release the objects that its source tree installs: the chart, or the manifests of releases before
// it.
func installed(t *testing.T, tree string, of cluster.Release) cluster.Release {
	t.Helper()
	manifests := filepath.Join(tree, "manifests")
	of.Profile = filepath.Join(manifests, "chart", "profile.yaml")
	if _, err := os.Stat(of.Profile); err == nil {
		rendered, err := render.ChartIn(os.DirFS(filepath.Join(manifests, "chart")), render.Default())
		if err != nil {
			t.Fatal(err)
		}
		of.Objects = rendered.All()
		return of
	}
	of.Profile = filepath.Join(manifests, "scheduler", "config.yaml")
	for _, folder := range []string{"crds", "gangs", "controller", "access", "scheduler", "webhooks"} {
		files, err := filepath.Glob(filepath.Join(manifests, folder, "*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if file != of.Profile {
				of.Objects = append(of.Objects, objectsIn(t, file)...)
			}
		}
	}
	return of
}

// objectsIn reads the objects of a file.
func objectsIn(t *testing.T, file string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := render.Objects(content)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// checkOut makes a folder with the files of a commit, and its executables in bin.
func checkOut(t *testing.T, commit, tree string) {
	t.Helper()
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(tree, "tree.tar")
	runCommand(t, "git", "-C", sourceTree(t), "archive", "-o", archive, commit)
	runCommand(t, "tar", "-C", tree, "-xf", archive)
	runCommand(t, "go", "-C", tree, "build", "-p", "2", "-o", filepath.Join(tree, "built")+"/",
		"./controller/cmd/lockstep-controller", "./scheduler/cmd/lockstep-scheduler")
	if err := os.Rename(filepath.Join(tree, "built"), filepath.Join(tree, "bin")); err != nil {
		t.Fatal(err)
	}
}

// thisRelease builds the release of this source tree.
func thisRelease(t *testing.T) release {
	t.Helper()
	binaries, err := cluster.Build(t.Context(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return release{"this", installed(t, sourceTree(t), cluster.Release{
		Controller: binaries.Controller, Scheduler: binaries.Scheduler,
	})}
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
	runCommand(t, "go", "-C", root, "build", "-p", "2", "-overlay", file, "-o", executable,
		"./controller/cmd/lockstep-controller")
	next := thisRelease(t)
	next.name, next.Controller = "next", executable
	return next
}

// runCommand runs a command, with Go as make runs it.
func runCommand(t *testing.T, name string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func sourceTree(t *testing.T) string {
	t.Helper()
	root, err := sourcetree.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// installFirst installs a release where none has been: without the CRDs, roles, policies and webhooks of another.
func installFirst(t *testing.T, first release) {
	t.Helper()
	must(t, shared.StopRelease(t.Context()))
	must(t, shared.DeleteRelease(t.Context(), thisRelease(t).Release))
	must(t, shared.ApplyRelease(t.Context(), first.Release))
	must(t, shared.StartRelease(t.Context(), first.Release))
}

// upgrade applies the manifests of a release while another runs, and then runs it in place of the other.
func upgrade(t *testing.T, next release) {
	t.Helper()
	from := time.Now()
	must(t, shared.ApplyRelease(t.Context(), next.Release))
	must(t, shared.StopRelease(t.Context()))
	foreignRoles.add(from, time.Now())
	must(t, shared.StartRelease(t.Context(), next.Release))
}

// rollBack stops the release that runs, runs the commands of blocks of docs/trust.md, and installs an earlier release,
// whose roles would not suffice for the other.
func rollBack(t *testing.T, earlier release, blocks ...string) {
	t.Helper()
	must(t, shared.StopRelease(t.Context()))
	for _, block := range blocks {
		documented(t, block)
	}
	must(t, shared.ApplyRelease(t.Context(), earlier.Release))
	must(t, shared.StartRelease(t.Context(), earlier.Release))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
