package migrate_test

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller/migrate"
)

var rewrite = flag.Bool("rewrite", false, "write what came out over what was wanted")

// TestGolden migrates each case of testdata and compares the result with the golden files: objects and notes, or the
// text of an error. The input must not change, and the output must need no migration.
func TestGolden(t *testing.T) {
	for _, dir := range cases(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			documents := readDocuments(t, filepath.Join(dir, "in.yaml"))
			before := contents(documents)
			result, err := migrate.Documents(documents)
			if diff := cmp.Diff(before, contents(documents)); diff != "" {
				t.Errorf("the input was changed:\n%s", diff)
			}
			if bad, isBad := errors.AsType[*migrate.InputError](err); isBad {
				compare(t, dir, map[string]string{"want-error.txt": bad.Error() + "\n"})
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			text := render(t, result.Objects)
			compare(t, dir, map[string]string{"want.yaml": text, "want-notes.txt": lines(result.Notes)})

			again, err := migrate.Documents(parse(t, "again.yaml", []byte(text)))
			if err != nil {
				t.Fatalf("what came out cannot be migrated: %v", err)
			}
			if diff := cmp.Diff(text, render(t, again.Objects)); diff != "" || len(again.Notes) > 0 {
				t.Errorf("what came out is migrated once more:\n%s\n%s", diff, lines(again.Notes))
			}
		})
	}
}

func cases(t *testing.T) []string {
	t.Helper()
	dirs, err := filepath.Glob("testdata/*")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	return dirs
}

func contents(documents []migrate.Document) []map[string]any {
	var out []map[string]any
	for _, document := range documents {
		out = append(out, runtime.DeepCopyJSON(document.Content))
	}
	return out
}

func render(t *testing.T, objects []map[string]any) string {
	t.Helper()
	var documents [][]byte
	for _, object := range objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, text)
	}
	return string(bytes.Join(documents, []byte("---\n")))
}

func lines(notes []migrate.Note) string {
	var out strings.Builder
	for _, note := range notes {
		out.WriteString(note.String() + "\n")
	}
	return out.String()
}

// compare wants the given files in dir, and no other expectation; an empty text wants no file.
func compare(t *testing.T, dir string, got map[string]string) {
	t.Helper()
	for _, name := range []string{"want.yaml", "want-notes.txt", "want-error.txt"} {
		file := filepath.Join(dir, name)
		if *rewrite {
			_ = os.Remove(file)
			if got[name] != "" {
				if err := os.WriteFile(file, []byte(got[name]), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}

func readDocuments(t *testing.T, file string) []migrate.Document {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, filepath.Base(file), text)
}

// parse reads the documents of a file; their lines count from the file's first. The laboratory's reader is not
// available here: nothing imports it.
func parse(t *testing.T, file string, text []byte) []migrate.Document {
	t.Helper()
	var documents []migrate.Document
	decoder := yamlv3.NewDecoder(bytes.NewReader(text))
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var root yamlv3.Node
		if err := decoder.Decode(&root); err != nil {
			t.Fatal(err)
		}
		asJSON, err := yaml.YAMLToJSONStrict([]byte(part + "\n"))
		if err != nil {
			t.Fatal(err)
		}
		var content map[string]any
		if err := utiljson.Unmarshal(asJSON, &content); err != nil {
			t.Fatal(err)
		}
		documents = append(documents, migrate.Document{
			File: file, Content: content, Line: func(path ...any) int { return lineOf(root.Content[0], path) },
		})
	}
	return documents
}

func lineOf(node *yamlv3.Node, path []any) int {
	line := node.Line
	for _, step := range path {
		found := false
		switch step := step.(type) {
		case string:
			for i := 0; node.Kind == yamlv3.MappingNode && i+1 < len(node.Content); i += 2 {
				if node.Content[i].Value == step {
					line, node, found = node.Content[i].Line, node.Content[i+1], true
					break
				}
			}
		case int:
			if node.Kind == yamlv3.SequenceNode && step < len(node.Content) {
				line, node, found = node.Content[step].Line, node.Content[step], true
			}
		}
		if !found {
			break
		}
	}
	return line
}
