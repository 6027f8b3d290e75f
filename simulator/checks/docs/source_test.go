package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// parsed returns the syntax of the Go files of a folder of the source tree, without its tests, in the order of their
// names.
func parsed(t *testing.T, folder string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s has no Go files (%v)", folder, err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// structOf returns a struct type of a package, nil if there is none of that name.
func structOf(files []*ast.File, name string) *ast.StructType {
	for _, file := range files {
		if object := file.Scope.Lookup(name); object != nil {
			if spec, ok := object.Decl.(*ast.TypeSpec); ok {
				if s, ok := spec.Type.(*ast.StructType); ok {
					return s
				}
			}
		}
	}
	return nil
}

// tagged returns the name of a field in JSON, empty for one without a name.
func tagged(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return ""
	}
	found := regexp.MustCompile(`json:"([^",]*)`).FindStringSubmatch(tag)
	if found == nil {
		return ""
	}
	return found[1]
}

// plainType prints a type, and the name of the struct that it holds: "list of", "map of", or nothing before it.
func plainType(expression ast.Expr) (text, name string) {
	switch e := expression.(type) {
	case *ast.StarExpr:
		return plainType(e.X)
	case *ast.ArrayType:
		text, name = plainType(e.Elt)
		return "list of " + text, name
	case *ast.MapType:
		text, name = plainType(e.Value)
		return "map of " + text, name
	case *ast.SelectorExpr:
		return strings.ToLower(e.Sel.Name), ""
	case *ast.Ident:
		switch e.Name {
		case "int", "int32", "int64":
			return "integer", ""
		case "float32", "float64":
			return "number", ""
		case "bool":
			return "boolean", ""
		}
		return e.Name, e.Name
	default:
		return "object", ""
	}
}

// sentences returns a comment on one line, without the words for readers of Go only.
func sentences(group *ast.CommentGroup) string {
	if group == nil {
		return ""
	}
	return strings.Join(strings.Fields(group.Text()), " ")
}

// cell escapes a text for a cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// documented returns the comment of a function or constant of a folder.
func documented(t *testing.T, folder, name string) string {
	t.Helper()
	for _, file := range parsed(t, folder) {
		for _, declared := range file.Decls {
			switch d := declared.(type) {
			case *ast.FuncDecl:
				if d.Name.Name == name {
					return sentences(d.Doc)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && v.Names[0].Name == name {
						return sentences(v.Doc)
					}
				}
			}
		}
	}
	t.Fatalf("%s declares no %s", folder, name)
	return ""
}
