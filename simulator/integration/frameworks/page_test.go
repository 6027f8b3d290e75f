package frameworks_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/lockstep-project/lockstep/simulator/cluster"
)

// transcript is what docs/real-nodes.md shows of a run: a row for each test that passed, in their order.
var transcript struct {
	sync.Mutex

	rows []string
}

// record adds a row: a test, what was seen, and the seconds from the call that creates the job to its end.
func record(test, seen string, seconds float64) {
	transcript.Lock()
	defer transcript.Unlock()
	transcript.rows = append(transcript.rows, fmt.Sprintf("| `%s` | %s | %.0f |\n", test, seen, seconds))
}

var block = regexp.MustCompile(`(?s)<!-- make e2e-real: runs -->\n.*<!-- end -->\n`)

// writePage writes what was recorded into the page.
func writePage() error {
	root, err := cluster.SourceTree()
	if err != nil {
		return err
	}
	file := filepath.Join(root, "docs", "real-nodes.md")
	content, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("reading the page: %w", err)
	}
	table := "<!-- make e2e-real: runs -->\n| test | printed by the ranks, or seen | seconds |\n| --- | --- | --- |\n" +
		strings.Join(transcript.rows, "") + "<!-- end -->\n"
	if err := os.WriteFile(file, block.ReplaceAllLiteral(content, []byte(table)), 0o644); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}
