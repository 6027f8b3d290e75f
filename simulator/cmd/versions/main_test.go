package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The table has the outcome of each suite, and a log without an end is no success.
func TestRun(t *testing.T) {
	const log = `=== RUN   TestA
    a_test.go:9: looking
--- PASS: TestA (0.10s)
    --- PASS: TestA/sub (0.10s)
=== RUN   TestB
    b_test.go:12: the gate is off
--- SKIP: TestB (0.00s)
PASS
`
	for name, c := range map[string]struct {
		log, want string
		fails     bool
	}{
		"all pass":   {log, "| 1.34 | resources | 1 | 0 | 1: the gate is off (TestB) |", false},
		"one fails":  {strings.Replace(log, "--- PASS: TestA (", "--- FAIL: TestA (", 1), "| 1.34 | resources | 0 | 1 |", true},
		"it was cut": {strings.TrimSuffix(log, "PASS\n"), "| 1.34 | resources | 1 | 0 |", true},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "1.34-resources.log"), []byte(c.log), 0o600); err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := run(
				folder,
				&out,
			); errors.Is(err, errFailed) != c.fails ||
				!strings.Contains(out.String(), c.want) {
				t.Errorf("%v; printed\n%s", err, out.String())
			}
		})
	}
	if err := run(t.TempDir(), &strings.Builder{}); err == nil {
		t.Error("a folder without logs is taken for success")
	}
}
