// Package page has tests write what commands print into pages, and fail if a page says something else. A block of a page is a marker and a fenced
// text:
//
//	<!-- make test-full: NAME -->
//	```
//	...
//	```
package page

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/cluster"
)

// Page is a page with blocks of one marker.
type Page struct {
	// File is its path in the source tree, Marker what its blocks' markers begin with: the command that runs the test.
	File, Marker string
	// Write has blocks written that differ. Mend is how to ask for that, for people.
	Write bool
	Mend  string
}

// Transcript is a command and what it printed, as the text of a block.
func Transcript(command, out string) string {
	lines := []string{"$ " + command}
	for line := range strings.Lines(out) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n")
}

// Has fails the test unless the page has these blocks, by their names. Its other blocks stay as they are.
func (p Page) Has(t *testing.T, blocks map[string]string) {
	t.Helper()
	before, after, used := p.replaced(t, blocks)
	for name := range blocks {
		if !used[name] {
			t.Errorf("%s has no block %q", p.File, name)
		}
	}
	switch {
	case after == before:
	case p.Write:
		if err := os.WriteFile(p.path(t), []byte(after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale; run %s", p.File, p.Mend)
	}
}

// HasOnly is Has for a page without other blocks.
func (p Page) HasOnly(t *testing.T, blocks map[string]string) {
	t.Helper()
	_, _, used := p.replaced(t, blocks)
	for name := range used {
		if _, recorded := blocks[name]; !recorded {
			t.Errorf("%s has a block %q, which is not recorded", p.File, name)
		}
	}
	p.Has(t, blocks)
}

// replaced returns the page as it is and as it should be, and the names of its blocks.
func (p Page) replaced(t *testing.T, blocks map[string]string) (before, after string, used map[string]bool) {
	t.Helper()
	content, err := os.ReadFile(p.path(t))
	if err != nil {
		t.Fatal(err)
	}
	found, used := regexp.MustCompile("(?s)<!-- "+p.Marker+": ([a-z0-9.-]+) -->\n```\n.*?```\n"), map[string]bool{}
	after = found.ReplaceAllStringFunc(string(content), func(block string) string {
		name := found.FindStringSubmatch(block)[1]
		used[name] = true
		text, recorded := blocks[name]
		if !recorded {
			return block
		}
		return fmt.Sprintf("<!-- %s: %s -->\n```\n%s\n```\n", p.Marker, name, strings.Trim(text, "\n"))
	})
	return string(content), after, used
}

func (p Page) path(t *testing.T) string {
	t.Helper()
	root, err := cluster.SourceTree()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, p.File)
}
