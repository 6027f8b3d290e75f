package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
)

// sentence is the answer in one line.
func sentence(v whatif.Verdict, g Gang, now time.Time) string {
	switch v.State {
	case whatif.Placed:
		text := fmt.Sprintf("runs on %s", place(*g.Where))
		if g.Members > g.Running {
			text += fmt.Sprintf("; places are reserved for %s to come", count(g.Members-g.Running, "late member"))
		}
		return text
	case whatif.Fits:
		return fits(v, g)
	case whatif.Preempts:
		return fmt.Sprintf("preempts %s, and starts on %s", victims(*g.Preemption), place(*g.Where))
	case whatif.Moves:
		return "starts again as a whole, since there is no room for the members that it lost: on " + place(*g.Where)
	case whatif.Incomplete:
		return incomplete(g)
	case whatif.Wrong:
		return "requests what this fleet does not have"
	case whatif.Foreign:
		return fmt.Sprintf("is scheduled by %s, not by this scheduler", v.Gang.Scheduler)
	case whatif.Waits:
	}
	return waits(v, g, now)
}

func fits(v whatif.Verdict, g Gang) string {
	switch {
	case v.Vacated:
		return "fits when the victims of other gangs have left, on " + place(*g.Where)
	case g.Running > 0:
		return fmt.Sprintf("runs with %s, and there is room for the others, on %s",
			count(g.Running, "member"), place(planned(*g.Where)))
	}
	return "fits: it starts in the scheduler's next cycle, on " + place(*g.Where)
}

func waits(v whatif.Verdict, g Gang, now time.Time) string {
	own := g.Reserved
	switch {
	case v.Sweep != nil:
		return v.Sweep.String()
	case v.Shortfall != nil && len(v.Shortfall.Unoffered) > 0:
		return "waits, and no node offers " + strings.Join(v.Shortfall.Unoffered, ", ")
	case v.Shortfall != nil && v.Shortfall.Never:
		return "waits, and would not fit an empty fleet"
	case v.Behind != nil:
		text := "waits: the nodes that would hold it are reserved for " + few(owners(g.Behind.Reserved))
		if at := g.Behind.At; at != nil {
			text += " until " + moment(*at, now)
		}
		return text
	case own != nil && own.Open:
		return "waits for room; it has a place, which others may use: too many accelerators would idle until it is free"
	case own != nil && own.Reason == string(contention.Preemption):
		return "waits for room; a place is reserved for it, which workloads have yet to leave"
	case own != nil && own.At != nil:
		return "waits for room; a place is reserved for it, " + free(*own, now)
	case g.Running > 0:
		return fmt.Sprintf("runs with %s; there is no room for the others", count(g.Running, "member"))
	case v.Cause == contention.NoEnd:
		return "waits for room, and no expected end makes any"
	}
	return "waits for room"
}

// owners are the gangs that places are reserved for.
func owners(places []Reserved) []string {
	names := make([]string, len(places))
	for i, r := range places {
		names[i] = r.For
	}
	return names
}

func incomplete(g Gang) string {
	if len(g.Missing.Gates) > 0 && g.Missing.Exist >= g.Needed {
		return "waits for its scheduling gates"
	}
	if g.Running > 0 {
		return fmt.Sprintf("runs with %s; the others of the %d that it needs do not all exist",
			count(g.Running, "member"), g.Needed)
	}
	return fmt.Sprintf("is incomplete: it needs %s, and %d exist", count(g.Needed, "member"), g.Missing.Exist)
}

// place returns the place of a placement, in a few words.
func place(w Where) string {
	text := count(w.Nodes, "node")
	if w.Within != "" {
		text += " in " + w.Within
	}
	return text
}

// planned returns the ranks that have no node yet.
func planned(w Where) Where {
	out := Where{Within: w.Within}
	nodes := make(map[string]bool)
	for _, r := range w.Ranks {
		if r.Planned {
			out.Ranks, nodes[r.Node] = append(out.Ranks, r), true
		}
	}
	out.Nodes = len(nodes)
	return out
}

func victims(p Preemption) string {
	names := make([]string, len(p.Victims))
	for i, v := range p.Victims {
		names[i] = v.Name
		if v.Pod {
			names[i] = "pod " + v.Name
		}
	}
	return few(names)
}

// sentence is the answer about a drain in one line.
func (d *Drain) sentence() string {
	gangs, pods, left, gone := 0, 0, 0, 0
	for _, m := range d.Moves {
		if m.Pod {
			pods++
		} else {
			gangs++
		}
		switch {
		case m.Forever:
			gone++
		case !m.Then.Starts && m.Then.State != string(whatif.Foreign):
			left++
		}
	}
	text := fmt.Sprintf("draining %s displaces ", count(len(d.Nodes), "node"))
	switch {
	case gangs+pods == 0:
		return text + "nothing"
	case pods == 0:
		text += count(gangs, "gang")
	case gangs == 0:
		text += count(pods, "pod")
	default:
		text += count(gangs, "gang") + " and " + count(pods, "pod")
	}
	if gone > 0 {
		text += fmt.Sprintf(", %d for good", gone)
	}
	switch {
	case left == 0 && gone == 0:
		return text + "; all have a place elsewhere"
	case left == 0:
		return text + "; the others have a place elsewhere"
	case left == gangs+pods:
		return text + "; there is no room for any of them elsewhere"
	}
	return text + fmt.Sprintf("; there is no room elsewhere for %d of them", left)
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// moment is a future instant as people write it: the time of day, with its date if that is not today's, and the time
// until then.
func moment(at, now time.Time) string {
	at, now = at.UTC(), now.UTC()
	form := "15:04Z"
	if at.YearDay() != now.YearDay() || at.Year() != now.Year() {
		form = "2006-01-02 15:04Z"
	}
	if !at.After(now) {
		return at.Format(form) + " (overdue)"
	}
	return fmt.Sprintf("%s (in %s)", at.Format(form), span(at.Sub(now)))
}

// span is a duration in its two largest units: 3d4h, 2h5m, 30s.
func span(d time.Duration) string {
	const day = 24 * time.Hour
	if d >= day {
		return strings.TrimSuffix(fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour), "0h")
	}
	text := d.Round(time.Second).String()
	if d >= time.Hour {
		text = d.Round(time.Minute).String()
	}
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = strings.TrimSuffix(text, zero[1:])
		}
	}
	return text
}

// ranges are numbers as people write them: 0-3, 7. They ascend.
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		part := strconv.Itoa(numbers[i])
		if last > i {
			part = fmt.Sprintf("%d-%d", numbers[i], numbers[last])
		}
		parts, i = append(parts, part), last+1
	}
	return strings.Join(parts, ", ")
}

func sorted(numbers []int) []int {
	out := slices.Clone(numbers)
	slices.Sort(out)
	return out
}
