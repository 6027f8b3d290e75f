package main

import (
	"slices"
	"testing"
)

func TestSelfContained_FollowsImports(t *testing.T) {
	tests := []string{"a_test.go"}
	all := []pkg{
		{Dir: "pure", ImportPath: "m/pure", Imports: []string{"fmt"}, TestGoFiles: tests},
		{Dir: "runner", ImportPath: "m/runner", Imports: []string{"os/exec"}},
		{Dir: "between", ImportPath: "m/between", Imports: []string{"m/pure", "m/runner"}, TestGoFiles: tests},
		{Dir: "user", ImportPath: "m/user", Imports: []string{"m/between"}, XTestGoFiles: tests},
		{Dir: "tester", ImportPath: "m/tester", XTestImports: []string{"m/runner"}, XTestGoFiles: tests},
		{Dir: "itself", ImportPath: "m/itself", TestImports: []string{"os/exec"}, TestGoFiles: tests},
		{Dir: "beside", ImportPath: "m/beside", Imports: []string{"m/itself"}, TestGoFiles: tests},
	}
	alone, others := selfContained(all)
	if want := []string{"pure", "beside"}; !slices.Equal(alone, want) {
		t.Errorf("%v start no program, want %v", alone, want)
	}
	if want := []string{"between", "user", "tester", "itself"}; !slices.Equal(others, want) {
		t.Errorf("%v may start programs, want %v", others, want)
	}
}
