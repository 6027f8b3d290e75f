// Package page lets tests write the output of commands into pages, and fail if a page differs. A block of a page is a
// marker and a fenced text:
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

	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

// Page is a page with blocks of one marker.
type Page struct {
	// File is its path in the source tree, Marker the prefix of its blocks' markers: the command that runs the test.
	File, Marker string
	// Write has blocks written that differ. Mend is the command for that, for people.
	Write bool
	Mend  string
}

// Transcript is a command and its output, as the text of a block.
func Transcript(command, out string) string {
	lines := []string{"$ " + command}
	for line := range strings.Lines(out) {
		lines = append(lines, strings.TrimRight(line, " \n"))
	}
	return strings.Join(lines, "\n")
}

// Has fails the test unless the page has these blocks, by their names. Its other blocks are unchanged.
func (p Page) Has(t *testing.T, blocks map[string]string) {
	t.Helper()
	path, before := p.read(t)
	after, used := p.replaced(before, blocks)
	for name := range blocks {
		if !used[name] {
			t.Errorf("%s has no block %q", p.File, name)
		}
	}
	p.settle(t, path, before, after)
}

// Is fails the test unless the whole page has this text.
func (p Page) Is(t *testing.T, text string) {
	t.Helper()
	path, before := p.read(t)
	p.settle(t, path, before, text)
}

// settle writes the page as it should be if that was asked for, and fails the test otherwise if it differs.
func (p Page) settle(t *testing.T, path, before, after string) {
	t.Helper()
	switch {
	case after == before:
	case p.Write:
		if err := os.WriteFile(path, []byte(after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s is stale; run %s", p.File, p.Mend)
	}
}

// HasSection fails the test unless the page has this Markdown between a marker and "<!-- end -->".
func (p Page) HasSection(t *testing.T, name, text string) {
	t.Helper()
	path, before := p.read(t)
	marker := fmt.Sprintf("<!-- %s: %s -->\n", p.Marker, name)
	begin, rest, ok := strings.Cut(before, marker)
	_, end, closed := strings.Cut(rest, "<!-- end -->\n")
	if !ok || !closed {
		t.Fatalf("%s has no section %q", p.File, name)
	}
	p.settle(t, path, before, begin+marker+text+"<!-- end -->\n"+end)
}

// HasOnly is Has for a page without other blocks.
func (p Page) HasOnly(t *testing.T, blocks map[string]string) {
	t.Helper()
	_, before := p.read(t)
	_, used := p.replaced(before, blocks)
	for name := range used {
		if _, recorded := blocks[name]; !recorded {
			t.Errorf("%s has a block %q, which is not recorded", p.File, name)
		}
	}
	p.Has(t, blocks)
}

// replaced returns the page as it should be, and the names of its blocks.
func (p Page) replaced(before string, blocks map[string]string) (after string, used map[string]bool) {
	found, used := regexp.MustCompile("(?s)<!-- "+p.Marker+": ([a-z0-9.-]+) -->\n```\n.*?```\n"), map[string]bool{}
	after = found.ReplaceAllStringFunc(before, func(block string) string {
		name := found.FindStringSubmatch(block)[1]
		used[name] = true
		text, recorded := blocks[name]
		if !recorded {
			return block
		}
		return fmt.Sprintf("<!-- %s: %s -->\n```\n%s\n```\n", p.Marker, name, strings.Trim(text, "\n"))
	})
	return after, used
}

// read returns the page's path and its text.
func (p Page) read(t *testing.T) (path, text string) {
	t.Helper()
	root, err := sourcetree.Root()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(root, p.File)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return path, string(content)
}

// Lines counts the lines of the page.
func (p Page) Lines(t *testing.T) int {
	t.Helper()
	_, text := p.read(t)
	return strings.Count(text, "\n")
}
