package docs_test

import (
	"go/ast"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGlossary holds the glossary to forty words, each once, and its types to the code.
func TestGlossary(t *testing.T) {
	const most = 40
	rows := regexp.MustCompile("(?m)^\\| ([^|]+) \\| ([^|]+) \\|(?: `([^`]+)`)? \\|$").
		FindAllStringSubmatch(text(t, "docs/glossary.md"), -1)
	rows = rows[1:] // the head of the table
	if len(rows) > most || len(rows) < most/2 {
		t.Errorf("the glossary has %d words, want at most %d", len(rows), most)
	}
	seen := map[string]bool{}
	for _, row := range rows {
		word, name := row[1], row[3]
		if seen[word] || name != "" && seen[name] {
			t.Errorf("%s, or its type %s, is there twice", word, name)
		}
		seen[word], seen[name] = true, name != ""
		if name != "" && !hasType(t, name) {
			t.Errorf("%s is not the type of %s", name, word)
		}
	}
}

// hasType reports whether package.Type is a type of the core, or of the simulator.
func hasType(t *testing.T, name string) bool {
	t.Helper()
	folder, of, _ := strings.Cut(name, ".")
	for _, room := range []string{"", "scheduler", "simulator", "simulator/inputs", "simulator/score", "controller"} {
		found, err := filepath.Glob(filepath.Join(root, room, folder, "*.go"))
		if err != nil || len(found) == 0 {
			continue
		}
		for _, file := range parsed(t, filepath.Join(room, folder)) {
			for _, declared := range file.Decls {
				if d, ok := declared.(*ast.GenDecl); ok && declaresType(d, of) {
					return true
				}
			}
		}
	}
	return false
}

func declaresType(d *ast.GenDecl, name string) bool {
	for _, spec := range d.Specs {
		if s, ok := spec.(*ast.TypeSpec); ok && s.Name.Name == name {
			return true
		}
	}
	return false
}
