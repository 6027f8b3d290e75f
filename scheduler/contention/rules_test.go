package contention_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every scene shows a rule, and every scene that a rule names exists.
func TestDesign_NamesEachScene(t *testing.T) {
	text, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	var named []int
	for _, list := range regexp.MustCompile(`\bscenes? ([\d, ]+(?:(?:and|to) \d+)?)`).FindAllStringSubmatch(string(text), -1) {
		named = append(named, numbers(t, list[1])...)
	}
	paths, err := filepath.Glob("testdata/scenes/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scenes", err)
	}
	var there []int
	for _, path := range paths {
		number, _, _ := strings.Cut(filepath.Base(path), "_")
		there = append(there, numbers(t, number)...)
	}
	for _, n := range there {
		if !slices.Contains(named, n) {
			t.Errorf("no rule in DESIGN.md names scene %d", n)
		}
	}
	for _, n := range named {
		if !slices.Contains(there, n) {
			t.Errorf("DESIGN.md names scene %d, which does not exist", n)
		}
	}
}

// numbers reads "41", "45, 46", "43 and 63" and "56 to 58".
func numbers(t *testing.T, list string) []int {
	t.Helper()
	var all []int
	through := false
	for word := range strings.FieldsFuncSeq(list, func(r rune) bool { return r == ' ' || r == ',' }) {
		if word == "and" || word == "to" {
			through = word == "to"
			continue
		}
		n, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		if through {
			for m := all[len(all)-1] + 1; m < n; m++ {
				all = append(all, m)
			}
		}
		all = append(all, n)
	}
	return all
}
