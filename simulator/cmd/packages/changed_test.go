package main

import (
	"slices"
	"testing"
)

func TestConcerned_PackagesAndWhatImportsThem(t *testing.T) {
	tests := []string{"a_test.go"}
	all := []pkg{
		{Dir: "core", ImportPath: "m/core", TestGoFiles: tests},
		{Dir: "core/part", ImportPath: "m/core/part", TestGoFiles: tests},
		{Dir: "user", ImportPath: "m/user", Imports: []string{"m/core"}, TestGoFiles: tests},
		{Dir: "tester", ImportPath: "m/tester", XTestImports: []string{"m/core"}, XTestGoFiles: tests},
		{Dir: "untested", ImportPath: "m/untested", Imports: []string{"m/core"}},
		{Dir: "far", ImportPath: "m/far", Imports: []string{"m/user"}, TestGoFiles: tests},
		{Dir: "slow/suite", ImportPath: "m/slow/suite", Imports: []string{"m/core"}, TestGoFiles: tests},
	}
	for _, c := range []struct{ files, want []string }{
		{nil, nil},
		{[]string{"README.md", "docs/page.md"}, nil},
		{[]string{"core/a.go"}, []string{"core", "tester", "user"}},
		{[]string{"core/testdata/deep/case.txt"}, []string{"core", "tester", "user"}},
		{[]string{"core/part/a.go", "far/b.go"}, []string{"core/part", "far"}},
		{[]string{"slow/suite/a_test.go"}, nil},
	} {
		if got := concerned(all, c.files, []string{"slow", ""}); !slices.Equal(got, c.want) {
			t.Errorf("%v concern %v, want %v", c.files, got, c.want)
		}
	}
}
