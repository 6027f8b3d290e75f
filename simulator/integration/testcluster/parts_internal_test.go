package testcluster

import (
	"slices"
	"testing"
)

func TestInParts_DealsTestsOut(t *testing.T) {
	want := [][]string{{"TestA", "TestD"}, {"TestB"}, {"TestC"}}
	got := divide([]string{"TestA", "TestB", "TestC", "TestD"}, 3)
	if !slices.EqualFunc(got, want, slices.Equal[[]string]) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := divide([]string{"TestA"}, 3); len(got) != 1 {
		t.Errorf("%d parts of one test", len(got))
	}
}

// A part has the flags of the whole, and ours are the last ones, which count.
func TestInParts_Arguments(t *testing.T) {
	got := partArguments([]string{"-test.shuffle=on", "-parts", "4", "-mode", "resources"}, []string{"TestA", "TestB"})
	want := []string{
		"-test.shuffle=on", "-parts", "4", "-mode", "resources", "-parts=1", "-test.run=^(TestA|TestB)$",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
