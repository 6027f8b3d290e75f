package explain

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
)

// WriteText prints the answer first, and then its evidence.
func WriteText(w io.Writer, a Answer) error {
	t := text{now: a.At}
	if a.Job != nil {
		t.line(0, "%s %s", a.Job.Name, a.Job.Answer)
	}
	for i, g := range a.Gangs {
		if i > 0 {
			t.line(0, "")
		}
		t.gang(g)
	}
	if a.Queue != nil {
		t.queue(*a.Queue)
	}
	if a.Drain != nil {
		t.drain(*a.Drain)
	}
	for _, note := range a.Notes {
		t.line(0, "note: %s", note)
	}
	if _, err := io.WriteString(w, shortened(t.String())); err != nil {
		return fmt.Errorf("printing the answer: %w", err)
	}
	return nil
}

// uuid matches the names of NVLink domains; people can only use the first part of one.
var uuid = regexp.MustCompile(`\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)

// shortened cuts UUIDs to their first part, unless two begin alike.
func shortened(page string) string {
	whole := make(map[string]string)
	for _, found := range uuid.FindAllStringSubmatch(page, -1) {
		if other, ok := whole[found[1]]; ok && other != found[0] {
			return page
		}
		whole[found[1]] = found[0]
	}
	return uuid.ReplaceAllString(page, "$1")
}

// text is the printed text, line by line.
type text struct {
	strings.Builder
	now time.Time
	// depth is the indentation of all lines.
	depth int
}

func (t *text) line(indent int, format string, args ...any) {
	t.WriteString(strings.TrimRight(strings.Repeat("  ", t.depth+indent)+fmt.Sprintf(format, args...), " ") + "\n")
}

func (t *text) gang(g Gang) {
	t.line(0, "%s %s", g.Name, g.Answer)
	if g.Mark != nil {
		t.mark(*g.Mark)
	}
	t.evidence(g)
	if g.Where != nil {
		t.places(*g.Where)
	}
	waited := t.now.Sub(g.QueuedAt)
	if g.State == string(whatif.Placed) || waited < 0 {
		return
	}
	queue := "not in the queue"
	if g.Position > 0 {
		queue = fmt.Sprintf("number %d in the queue", g.Position)
	}
	t.line(1, "%s: priority %d, for %s; %s, %s", queue, g.Priority, span(waited),
		count(g.Members, "member"), count(int(g.Accelerators), "accelerator"))
	if g.Start != nil {
		t.line(1, "expected start: %s", g.Start.Text)
		if u := g.Start.Usually; u != nil {
			t.line(1, "eight in ten such waits end between %s and %s, half by %s",
				moment(u.From, t.now), moment(u.Until, t.now), moment(u.Half, t.now))
		}
	}
}

// evidence prints the reasons of the answer.
func (t *text) evidence(g Gang) {
	if g.Problem != "" {
		t.line(1, "%s", g.Problem)
	}
	if g.Missing != nil {
		t.missing(*g.Missing)
	}
	if g.Shortfall != nil {
		t.line(1, "%s", g.Shortfall.Text)
	}
	t.services(g.Services)
	if s := g.Sweep; s != nil {
		t.line(1, "until one of sweep %s ends it has no place, and others pass", s.Name)
	}
	if b := g.Behind; b != nil {
		for _, of := range b.Reserved {
			t.reserved(of)
		}
		if b.End != nil {
			t.line(1, "it would end %s", moment(*b.End, t.now))
		} else if b.At != nil {
			t.line(1, "its end is not known; %s, and a gang that ends before the place is needed may pass", howToTell)
		}
	}
	if len(g.After) > 0 {
		t.line(1, "a place is reserved for it when these have theirs: %s", few(g.After))
	}
	if g.Reserved != nil {
		t.reserved(*g.Reserved)
	}
	if len(g.Passes) > 0 {
		t.line(1, "it uses nodes that are reserved for %s without delaying that", few(g.Passes))
	}
	if p := g.Preemption; p != nil {
		t.preemption(*p)
	} else if g.NoVictims != "" && g.Behind == nil && (g.Shortfall == nil || !g.Shortfall.Never) {
		t.line(1, "it preempts nothing: %s", g.NoVictims)
	}
}

// services names the services that hold the accelerators that a gang lacks.
func (t *text) services(all []Waited) {
	if len(all) == 0 {
		return
	}
	const most = 8
	t.line(1, "these hold accelerators, and are not meant to end:")
	for i, w := range all {
		if i == most {
			t.line(2, "and %d more", len(all)-most)
			break
		}
		t.line(2, "%s (%s)", waited(w), count(int(w.Accelerators), "accelerator"))
	}
}

func (t *text) missing(m Missing) {
	switch {
	case m.Exist == 0:
		t.line(
			1,
			"its pods do not exist: a JobSet that waits for something, or a Job that pauses after its pods were deleted",
		)
	case len(m.Indexes) > 0:
		t.line(1, "no pod has completion index %s", ranges(m.Indexes))
	}
	for _, gate := range slices.Sorted(maps.Keys(m.Gates)) {
		t.line(1, "scheduling gate %s holds back %s", gate, count(m.Gates[gate], "member"))
	}
	if m.Leaving > 0 {
		t.line(1, "%s being deleted", count(m.Leaving, "member"))
	}
}

// reserved describes the place that is reserved for a gang, its instant, and the units that have to end.
func (t *text) reserved(r Reserved) {
	line := fmt.Sprintf("reserved for %s: %s", r.For, place(r.Where))
	if r.Reason != string(contention.Head) {
		line = fmt.Sprintf("reserved for %s (%s): %s", r.For, r.Reason, place(r.Where))
	}
	if r.At != nil {
		line += ", " + free(r, t.now)
	}
	if r.Open {
		line += "; others may use it until then"
	}
	if len(r.WaitsFor) > 0 {
		line += "; these have to end:"
	}
	t.line(1, "%s", line)
	const most = 8
	for i, w := range r.WaitsFor {
		if i == most {
			t.line(2, "and %d more that end before", len(r.WaitsFor)-most)
			break
		}
		t.line(2, "%s (%s): %s", waited(w), count(int(w.Accelerators), "accelerator"), t.end(w))
	}
}

// free gives the instant at which a place is free.
func free(r Reserved, now time.Time) string {
	if r.Estimated {
		return "estimated to be free " + moment(*r.At, now)
	}
	return "expected to be free " + moment(*r.At, now)
}

func waited(w Waited) string {
	if w.Pod {
		return "pod " + w.Name
	}
	return w.Name
}

// end gives the end of a unit.
func (t *text) end(w Waited) string {
	switch {
	case w.End == nil:
		return "its end is not known"
	case w.Overdue:
		return "overdue; estimated to end " + moment(*w.End, t.now)
	case w.Estimated:
		return "its end is not known; estimated " + moment(*w.End, t.now)
	}
	return "ends " + moment(*w.End, t.now)
}

func (t *text) preemption(p Preemption) {
	cheapest := ""
	if p.Cheapest {
		cheapest = "; no other victims lose less"
	}
	t.line(1, "lost with them: %g accelerator-hours of work since they began or saved%s", p.LostHours, cheapest)
	for _, v := range p.Victims {
		name := v.Name
		if v.Pod {
			name = "pod " + name
		}
		leaving := ""
		if v.Leaving {
			leaving = ", leaving already"
		}
		t.line(2, "%s: priority %d, %s, %s, loses %g accelerator-hours%s", name, v.Priority,
			count(v.Pods, "pod"), count(int(v.Accelerators), "accelerator"), v.LostHours, leaving)
	}
	t.exceeded(p.Exceeded)
}

func (t *text) exceeded(budgets []string) {
	for _, budget := range budgets {
		t.line(1, "PodDisruptionBudget %s allows fewer disruptions", budget)
	}
}

// places prints the ranks of each domain of the innermost level, a line for each.
func (t *text) places(w Where) {
	type part struct {
		path  string
		ranks []int
		late  []int
		nodes []string
	}
	var parts []part
	for _, r := range w.Ranks {
		at := slices.IndexFunc(parts, func(p part) bool { return p.path == r.path })
		if at < 0 {
			at, parts = len(parts), append(parts, part{path: r.path})
		}
		p := &parts[at]
		if r.Late {
			p.late = append(p.late, r.Rank)
		} else {
			p.ranks = append(p.ranks, r.Rank)
		}
		if !slices.Contains(p.nodes, r.Node) {
			p.nodes = append(p.nodes, r.Node)
		}
	}
	const most = 12
	for i, p := range parts {
		if i == most {
			t.line(2, "and %d more domains", len(parts)-most)
			break
		}
		line := "ranks "
		if len(p.ranks) == 1 {
			line = "rank "
		}
		line += ranges(sorted(p.ranks))
		if len(p.late) > 0 {
			line += " (reserved for late members: " + ranges(sorted(p.late)) + ")"
		}
		t.line(2, "%s: %s on %s", p.path, line, someNodes(p.nodes))
	}
}

// someNodes names nodes if they are few, and else the first and the last.
func someNodes(nodes []string) string {
	const most = 6
	if len(nodes) <= most {
		return strings.Join(nodes, " ")
	}
	return fmt.Sprintf("%s … %s (%d nodes)", nodes[0], nodes[len(nodes)-1], len(nodes))
}
