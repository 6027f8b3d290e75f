package upgrade_test

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// transcript is a table with the states of the jobs under one release after the other.
type transcript struct {
	began   time.Time
	release string
	jobSets map[string]types.UID
	lines   []string
}

// add adds a line: the number of jobs of each kind in each state, the JobSets that were replaced since the line before,
// and the number of the running jobs' JobSets and pods that are unchanged.
func (t *transcript) add(what string, now snapshot, kept, of int) {
	replaced := 0
	for name, job := range now.jobs {
		if job.jobSet == "" {
			continue
		}
		if before := t.jobSets[name]; before != "" && before != job.jobSet {
			replaced++
		}
		t.jobSets[name] = job.jobSet
	}
	cells := []string{t.release, what}
	for _, kind := range kinds() {
		var states []string
		for _, state := range []string{waits, runs, complete, between} {
			if count := now.count(kind, state); count > 0 {
				states = append(states, fmt.Sprintf("%d %s", count, state))
			}
		}
		cells = append(cells, strings.Join(states, ", "))
	}
	cells = append(cells, strconv.Itoa(replaced), fmt.Sprintf("%d of %d", kept, of),
		fmt.Sprintf("%.0f", time.Since(t.began).Seconds()))
	t.lines = append(t.lines, strings.Join(cells, "\t"))
}

// String returns the table as text.
func (t *transcript) String() string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	titles := append(
		append([]string{"release", "after"}, kinds()...),
		"JobSets replaced",
		"objects of running jobs unchanged",
		"s",
	)
	_, _ = fmt.Fprintln(table, strings.Join(titles, "\t")) // a strings.Builder returns no errors
	for _, line := range t.lines {
		_, _ = fmt.Fprintln(table, line)
	}
	_ = table.Flush()
	return out.String()
}
