package datacache_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/integration/page"
)

// record writes the events of a job, and the output of its ranks, into the page. Times differ with each run, so the
// page is only written on request.
func record(t *testing.T, what *eventLog, printed string) {
	t.Helper()
	if !*write {
		return
	}
	lines := slices.DeleteFunc(strings.Split(printed, "\n"), func(line string) bool {
		return !strings.Contains(line, "rank") || strings.HasPrefix(line, "W")
	})
	slices.Sort(lines)
	page.Page{File: "docs/data-cache.md", Marker: "make e2e-data-cache", Write: true}.Has(t, map[string]string{
		"order": strings.TrimRight(what.text(), "\n"), "ranks": strings.Join(lines, "\n"),
	})
}
