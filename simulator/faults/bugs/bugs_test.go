// Package bugs_test puts bugs into the product on purpose, and has the faults by seed find them.
package bugs_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var bugs = flag.String("bugs", "", "the bugs of testdata that are put in, as a pattern; none if it is empty")

const (
	root = "../../.."
	// played is the package whose test plays seeds and scenes.
	played = ".."
	// within is the number of seeds in which a bug has to be found.
	within = 300
)

// bug is a fault that is put into the product: pieces of files that are replaced, and the invariant that has to break,
// in some seed or, if the bug is too rare for that, in a scene.
type bug struct {
	finds, scene string
	edits        []edit
}

type edit struct{ file, was, is string }

// Each bug that is put in on purpose is found, by the invariant that is there for it.
func TestBugs(t *testing.T) {
	if *bugs == "" {
		t.Skip("-bugs is not set: each bug takes a build")
	}
	wanted := regexp.MustCompile(*bugs)
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no bugs", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if !wanted.MatchString(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			b := readBug(t, file)
			out := playWith(t, b)
			if !strings.Contains(out, b.finds) {
				t.Fatalf("it is not found:\n%s", out)
			}
			t.Log(out)
		})
	}
}

// readBug reads a file of testdata: the invariant that has to break, the scene if there is one, then edits.
func readBug(t *testing.T, file string) bug {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(content), "\nfile: ")
	_, finds, ok := strings.Cut(parts[0], "finds: ")
	if !ok {
		t.Fatalf("%s does not say what it finds", file)
	}
	finds, scene, _ := strings.Cut(finds, "\nscene: ")
	b := bug{finds: strings.TrimSpace(finds), scene: strings.TrimSpace(scene)}
	for _, part := range parts[1:] {
		name, rest, _ := strings.Cut(part, "\n-- was --\n")
		was, is, _ := strings.Cut(rest, "-- is --\n")
		b.edits = append(b.edits, edit{name, strings.TrimSuffix(was, "\n"), strings.TrimSuffix(is, "\n")})
	}
	return b
}

// The pieces of the product that bugs replace are still there.
func TestBugs_HaveTheirPlace(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no bugs", err)
	}
	for _, file := range files {
		readBug(t, file).put(t)
	}
}

// put returns the files of the product with the bug, by path.
func (b bug) put(t *testing.T) map[string]string {
	t.Helper()
	changed := make(map[string]string)
	for _, e := range b.edits {
		path, err := filepath.Abs(filepath.Join(root, e.file))
		if err != nil {
			t.Fatal(err)
		}
		text, ok := changed[path]
		if !ok {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text = string(content)
		}
		if strings.Count(text, e.was) != 1 {
			t.Fatalf("%s has %d times what is replaced:\n%s", e.file, strings.Count(text, e.was), e.was)
		}
		changed[path] = strings.Replace(text, e.was, e.is, 1)
	}
	return changed
}

// playWith builds this test with a bug, plays the scene, or seeds until one breaks something, and returns its output.
func playWith(t *testing.T, b bug) string {
	t.Helper()
	folder, changed := t.TempDir(), b.put(t)
	replaced := make(map[string]string)
	for i, path := range slices.Sorted(maps.Keys(changed)) {
		replaced[path] = filepath.Join(folder, fmt.Sprint(i, filepath.Ext(path)))
	}
	for path, text := range changed {
		if err := os.WriteFile(replaced[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	list, binary := filepath.Join(folder, "overlay.json"), filepath.Join(folder, "faults.test")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "test", "-p", "2", "-overlay", list, "-c", "-o", binary, played)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building it: %v\n%s", err, out)
	}
	test := []string{"-test.run", "^TestUntilBroken$", "-seeds", strconv.Itoa(within), "-until"}
	if b.scene != "" {
		test = []string{"-test.run", "^TestScenes$/^" + b.scene + "$"}
	}
	run := exec.CommandContext(t.Context(), binary, test...)
	run.Dir = played
	out, _ := run.CombinedOutput() // it fails if it finds something
	return string(out)
}
