// Package checks_test holds the wings of the simulator to the drawing of its DESIGN.md.
package checks_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/lockstep-project/lockstep/simulator/"

// drawn matches a wing of the drawing: its floor, or spaces for the floor of the line above, and its name.
var drawn = regexp.MustCompile(`^(\d| )  (\w+)  `)

// floors reads the drawing: the floor of each wing, from 1.
func floors(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("../DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	_, drawing, _ := strings.Cut(string(text), "```\n")
	drawing, _, _ = strings.Cut(drawing, "```")
	wings, floor := make(map[string]int), 0
	for line := range strings.Lines(drawing) {
		m := drawn.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if n, err := strconv.Atoi(m[1]); err == nil {
			floor = n
		}
		wings[m[2]] = floor
	}
	return wings
}

// A wing imports wings of lower floors only, and each folder of the simulator is a wing of the drawing.
func TestWings_ImportLowerFloorsOnly(t *testing.T) {
	wings := floors(t)
	if len(wings) < 10 {
		t.Fatalf("the drawing of DESIGN.md has the wings %v", wings)
	}
	list := exec.CommandContext(
		t.Context(),
		"go",
		"list",
		"-f",
		`{{.ImportPath}}{{range .Imports}} {{.}}{{end}}`,
		"../...",
	)
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		from := wingOf(fields[0])
		seen[from] = true
		if wings[from] == 0 {
			t.Errorf("%s is in no wing of the drawing", fields[0])
		}
		for _, imported := range fields[1:] {
			if to := wingOf(imported); to != "" && to != from && wings[to] >= wings[from] {
				t.Errorf("%s (%s, floor %d) imports %s (%s, floor %d)",
					fields[0], from, wings[from], imported, to, wings[to])
			}
		}
	}
	for wing := range wings {
		if !seen[wing] {
			t.Errorf("wing %s of the drawing has no package", wing)
		}
	}
}

// wingOf returns the wing of a package of the simulator, "" for any other package.
func wingOf(path string) string {
	rest, ours := strings.CutPrefix(path, module)
	if !ours {
		return ""
	}
	wing, _, _ := strings.Cut(rest, "/")
	return wing
}
