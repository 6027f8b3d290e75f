package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"testing"
)

// TestReadingPath_NamesCode fails for a function of the reading path that its file does not declare.
func TestReadingPath_NamesCode(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| \\[([^\\]]+)\\]\\([^)]+\\) \\| (?:`([^`]+)`)? \\|").
		FindAllStringSubmatch(text(t, "docs/reading-path.md"), -1)
	const least = 25
	if len(rows) < least {
		t.Fatalf("the path has %d steps, want %d or more", len(rows), least)
	}
	for _, row := range rows {
		file, function := row[1], row[2]
		if function == "" {
			text(t, file)
			continue
		}
		if !declares(t, file, function) {
			t.Errorf("%s declares no %s", file, function)
		}
	}
}

// declares reports whether a file declares a function, or a method Type.Name.
func declares(t *testing.T, file, function string) bool {
	t.Helper()
	syntax, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, file), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, declared := range syntax.Decls {
		if f, ok := declared.(*ast.FuncDecl); ok && nameOf(f) == function {
			return true
		}
	}
	return false
}

// nameOf returns the name of a function, with the type of its receiver.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	_, receiver := plainType(f.Recv.List[0].Type)
	return receiver + "." + f.Name.Name
}
