package movein_test

import (
	"bytes"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/controller/migrate"
	"github.com/lockstep-project/lockstep/simulator/inputs/movein"
	"github.com/lockstep-project/lockstep/simulator/inputs/yamlfile"
)

var rewrite = flag.Bool("rewrite", false, "write the results over the golden files")

// TestDocuments compares the result for each folder of testdata with its golden files: manifests, notes and rows, or an
// error. The input stays unchanged, and a second pass changes nothing.
func TestDocuments(t *testing.T) {
	for _, dir := range folders(t) {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			documents, options := load(t, dir)
			before := contents(documents)
			result, err := movein.Documents(documents, options)
			if diff := cmp.Diff(before, contents(documents)); diff != "" {
				t.Errorf("the input was changed:\n%s", diff)
			}
			if bad, isBad := errors.AsType[*migrate.InputError](err); isBad {
				compare(t, dir, map[string]string{"error": bad.Error() + "\n"})
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			text := render(t, result.Documents)
			var rows []string
			for _, row := range result.Rows {
				rows = append(rows, row.Name+"\n")
			}
			compare(t, dir, map[string]string{
				"want.yaml": text, "notes": lines(result.Notes), "rows": strings.Join(rows, ""),
			})
			again, err := movein.Documents(parse(t, "again.yaml", []byte(text)), options)
			if err != nil {
				t.Fatalf("the result is refused: %v", err)
			}
			if diff := cmp.Diff(text, render(t, again.Documents)); diff != "" {
				t.Errorf("a second pass changes the result:\n%s", diff)
			}
			for _, note := range again.Notes {
				mpi := strings.HasPrefix(note.Text, "changed: the MPIJob is a TrainJob")
				if of, _, _ := strings.Cut(note.Text, ":"); !mpi && (of == "changed" || of == "removed") {
					t.Errorf("a second pass says %s", note)
				}
			}
		})
	}
}

func folders(t interface{ Fatalf(string, ...any) }) []string {
	inputs, err := filepath.Glob("testdata/*/input.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no scenes: %v", err)
	}
	var dirs []string
	for _, input := range inputs {
		dirs = append(dirs, filepath.Dir(input))
	}
	return dirs
}

// load reads the input of a scene, and its options if it has some.
func load(t *testing.T, dir string) ([]migrate.Document, movein.Options) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, "input.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var options movein.Options
	given, err := os.ReadFile(filepath.Join(dir, "options.yaml"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(given, &options); err != nil {
		t.Fatal(err)
	}
	return parse(t, "input.yaml", content), options
}

func parse(t *testing.T, file string, content []byte) []migrate.Document {
	t.Helper()
	read, err := yamlfile.Read(file, content)
	if err != nil {
		t.Fatal(err)
	}
	var documents []migrate.Document
	for _, document := range read {
		items, err := document.Items()
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			documents = append(documents, migrate.Document{File: item.File, Content: item.Content, Line: item.LineOf})
		}
	}
	return documents
}

func contents(documents []migrate.Document) []map[string]any {
	var out []map[string]any
	for _, document := range documents {
		out = append(out, runtime.DeepCopyJSON(document.Content))
	}
	return out
}

func render(t *testing.T, documents []migrate.Document) string {
	t.Helper()
	var texts [][]byte
	for _, document := range documents {
		text, err := yaml.Marshal(document.Content)
		if err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return string(bytes.Join(texts, []byte("---\n")))
}

func lines(notes []migrate.Note) string {
	var out strings.Builder
	for _, note := range notes {
		out.WriteString(note.String() + "\n")
	}
	return out.String()
}

// compare wants these golden files in a folder, and no others; no file stands for an empty text.
func compare(t *testing.T, dir string, got map[string]string) {
	t.Helper()
	for _, name := range []string{"want.yaml", "notes", "rows", "error"} {
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
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got[name]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
}
