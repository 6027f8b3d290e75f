package frameworks_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

// transcript is the content of docs/real-nodes.md: a row for each test, of the last run in which it passed.
var transcript struct {
	sync.Mutex

	rows map[string]line
}

// line is the observation of a test, and the time of its longest job in seconds.
type line struct {
	seen    []string
	seconds float64
}

// record adds to the row of a test: the observation of a job, and the seconds from the call that creates it to its end.
func record(test, seen string, seconds float64) {
	transcript.Lock()
	defer transcript.Unlock()
	if transcript.rows == nil {
		transcript.rows = map[string]line{}
	}
	of := transcript.rows[test]
	if seen != "" {
		of.seen = append(of.seen, seen)
	}
	of.seconds = max(of.seconds, seconds)
	transcript.rows[test] = of
}

var (
	block = regexp.MustCompile(`(?s)<!-- make e2e-real: runs -->\n.*<!-- end -->\n`)
	row   = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|.*\\n")
)

// writePage writes the recorded rows into the page, and retains the rows of tests that did not pass or did not run.
func writePage() error {
	root, err := sourcetree.Root()
	if err != nil {
		return err
	}
	file := filepath.Join(root, "docs", "real-nodes.md")
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}
	rows := map[string]string{}
	for _, found := range row.FindAllStringSubmatch(string(block.Find(content)), -1) {
		rows[found[1]] = found[0]
	}
	for test, of := range transcript.rows {
		rows[test] = fmt.Sprintf("| `%s` | %s | %.0f |\n", test, strings.Join(of.seen, "; "), of.seconds)
	}
	var table strings.Builder
	table.WriteString(
		"<!-- make e2e-real: runs -->\n| test | printed by the ranks, or seen | seconds |\n| --- | --- | --- |\n",
	)
	for _, test := range slices.Sorted(maps.Keys(rows)) {
		table.WriteString(rows[test])
	}
	table.WriteString("<!-- end -->\n")
	if err := os.WriteFile(file, block.ReplaceAllLiteral(content, []byte(table.String())), 0o644); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}
