package sdk_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
)

var (
	block = regexp.MustCompile(`(?s)<!-- make test-sdk: calls -->\n.*<!-- end -->\n`)
	// times match the parts that differ from run to run.
	times = regexp.MustCompile(`(?m)\d+\.\d \|$|^\* .*$`)
)

// comparePage fails the test unless the page has the table that was played but for its times, or writes the table.
func comparePage(t *testing.T, answer played) {
	t.Helper()
	root, err := sourcetree.Root()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "docs", "sdk.md")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before := string(content)
	if !block.MatchString(before) {
		t.Fatalf("%s has no block of calls", file)
	}
	after := block.ReplaceAllLiteralString(before, table(answer))
	if times.ReplaceAllString(before, "") == times.ReplaceAllString(after, "") {
		return
	}
	if !*write {
		t.Errorf("docs/sdk.md is stale; run make test-sdk SDK=-write")
		return
	}
	if err := os.WriteFile(file, []byte(after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// table returns the block of the page.
func table(answer played) string {
	var text strings.Builder
	fmt.Fprintf(&text, "<!-- make test-sdk: calls -->\n%s.\n\n", summary(answer))
	for _, name := range slices.Sorted(maps.Keys(answer.Figures)) {
		fmt.Fprintf(&text, "* %s: %s\n", name, answer.Figures[name])
	}
	text.WriteString("\n| call | expected | result | seconds |\n| --- | --- | --- | --- |\n")
	for _, r := range answer.Rows {
		if r.whole() {
			continue
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %.1f |\n", r.Call, cell(r.Expected), same(r), r.Seconds)
	}
	text.WriteString("<!-- end -->\n")
	return text.String()
}

// summary counts the calls.
func summary(answer played) string {
	calls, unexpected := 0, 0
	for _, r := range answer.Rows {
		if !r.whole() {
			calls++
		}
		if r.Unexpected {
			unexpected++
		}
	}
	return fmt.Sprintf("SDK %s: %d calls, %d calls with an unexpected exception", answer.Version, calls, unexpected)
}

// whole reports whether a row is of a scene, which is there for exceptions between its calls.
func (r row) whole() bool { return strings.HasPrefix(r.Call, "scene ") }

// same returns the result of a call, in short if it is the expected one.
func same(r row) string {
	if r.Result == r.Expected {
		return "as expected"
	}
	return cell(r.Result)
}

// cell returns a text that breaks no table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }
