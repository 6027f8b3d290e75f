package compare

import (
	"fmt"
	"slices"
	"strings"
)

// essential returns the numbers that are shown of all schedulers beside each other: goodput, and the waits that a user
// of a cluster feels first. The allocation while jobs wait is not among them: it depends on the jobs that a scheduler
// makes wait, so it does not compare schedulers. All numbers fit into a line of 120 characters.
func essential() []struct {
	heading, name string
	scale         float64
} {
	return []struct {
		heading, name string
		scale         float64
	}{
		{"goodput %", "goodput.mean", 100},
		{"mean wait", "wait_seconds.mean", 1},
		{"p95 wait", "wait_seconds.p95", 1},
		{"longest", "wait_seconds.max", 1},
		{"by GPU-h", "by_gpu_hours.wait_seconds_mean", 1},
		{"Q", "by_gpu_hours.quality_mean_q", 1},
		{"slowdown", "costs.mean_slowdown", 1},
		{"lost GPU-h", "preemption.gpu_hours", 1},
		{"left", "gangs.pending", 1},
		{"broken", "violations.required_level", 1},
	}
}

// short is a line for each scheduler, with the signs of its verdicts against the first.
func (t Table) short(b *strings.Builder) {
	width := 14
	for _, name := range t.Schedulers {
		width = max(width, len(name))
	}
	put := func(name string, cells []string) {
		var line strings.Builder
		fmt.Fprintf(&line, "%-*s", width, name)
		for _, cell := range cells {
			fmt.Fprintf(&line, " %-10s", cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	var headings []string
	rows := make([][]string, len(t.Schedulers))
	for _, e := range essential() {
		at := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Name == e.name })
		if at < 0 {
			continue
		}
		headings = append(headings, e.heading)
		for i := range t.Schedulers {
			cell := number(t.Rows[at].Means[i] * e.scale)
			if i > 0 {
				cell += " " + briefly(t.Rows[at].Against[i-1].Verdict)
			}
			rows[i] = append(rows[i], cell)
		}
	}
	put("", headings)
	for i, scheduler := range t.Schedulers {
		put(scheduler, rows[i])
	}
	t.bounds(b, put)
	b.WriteString("waits in seconds, broken: required levels; + better, - worse than " + t.Schedulers[0] +
		" (95 %, each by itself), in brackets: one seed\n")
}

// bounds puts a line with the lower bounds for any scheduler, if some are known.
func (t Table) bounds(b *strings.Builder, put func(name string, cells []string)) {
	var cells []string
	known := false
	for _, e := range essential() {
		at := slices.IndexFunc(t.Rows, func(r Row) bool { return r.Name == e.name })
		switch {
		case at < 0:
		case t.Rows[at].Bound == nil:
			cells = append(cells, "")
		default:
			cells, known = append(cells, number(*t.Rows[at].Bound*e.scale)), true
		}
	}
	if known {
		put("bound", cells)
		b.WriteString("bound: no scheduler is below, where the time of runs that are lost counts as waiting\n")
	}
}

// briefly is a verdict as a sign.
func briefly(v Verdict) string {
	switch v {
	case Better:
		return "+"
	case Worse:
		return "-"
	case BetterOnce:
		return "(+)"
	case WorseOnce:
		return "(-)"
	case Equal, Unclear, NoVerdict:
	}
	return ""
}
