package topology_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// promised reads the numbers of the promises in doc.go, in order.
func promised(t *testing.T) []int {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	item := regexp.MustCompile(`(?m)^ +- P([0-9]+): `)
	var numbers []int
	for _, match := range item.FindAllStringSubmatch(file.Doc.Text(), -1) {
		n, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
	}
	return numbers
}

// testsByPromise reads the names of this package's tests: TestP3_P4_AnswersLikeTheTwin is one of P3 and of P4.
func testsByPromise(t *testing.T) map[int][]string {
	t.Helper()
	paths, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`^P([0-9]+)$`)
	tests := make(map[int][]string)
	for _, path := range paths {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			for part := range strings.SplitSeq(strings.TrimPrefix(f.Name.Name, "Test"), "_") {
				if match := number.FindStringSubmatch(part); match != nil {
					n, err := strconv.Atoi(match[1])
					if err != nil {
						t.Fatal(err)
					}
					tests[n] = append(tests[n], f.Name.Name)
				}
			}
		}
	}
	return tests
}

// Every promise of doc.go has a test with its number in its name, and no test has the number of another one.
func TestPromises(t *testing.T) {
	numbers, tests := promised(t), testsByPromise(t)
	if want := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}; !slices.Equal(numbers, want) {
		t.Errorf("doc.go promises %v, not %v", numbers, want)
	}
	for _, n := range numbers {
		if len(tests[n]) == 0 {
			t.Errorf("P%d has no test: one is named TestP%d_…", n, n)
		}
		delete(tests, n)
	}
	for n, names := range tests {
		t.Errorf("doc.go has no P%d, but %s", n, strings.Join(names, ", "))
	}
}
