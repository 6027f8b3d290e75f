package explain

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/whatif"
)

// sentence is the answer in one line.
func sentence(v whatif.Verdict, g Gang, now time.Time) string {
	switch v.State {
	case whatif.Placed:
		text := fmt.Sprintf("runs on %s", place(*g.Where))
		if g.Members > g.Running {
			text += fmt.Sprintf("; %s to come, and places are held", count(g.Members-g.Running, "late member"))
		}
		return text
	case whatif.Fits:
		text := "fits: it starts with the scheduler's next look, on " + place(*g.Where)
		if g.Running > 0 {
			text = fmt.Sprintf(
				"runs with %d members, and there is room for the others, on %s",
				g.Running,
				place(planned(*g.Where)),
			)
		}
		return text
	case whatif.Preempts:
		return fmt.Sprintf("starts instead of %s, on %s", victims(*g.Preemption), place(*g.Where))
	case whatif.Moves:
		return "starts again as a whole, since there is no room for the members that it lost: on " + place(*g.Where)
	case whatif.Incomplete:
		return incomplete(g)
	case whatif.Wrong:
		return "asks for what cannot be on this fleet"
	case whatif.Foreign:
		return fmt.Sprintf("is the business of scheduler %s, not ours", v.Gang.Scheduler)
	case whatif.Waits:
	}
	switch {
	case v.Shortfall != nil && v.Shortfall.Never:
		return "waits, and would not fit if nothing else ran"
	case v.Behind != nil:
		return fmt.Sprintf("waits behind %s: there is room, but it is kept for that one", g.Behind.Head)
	case v.Kept != nil && !v.Kept.At.IsZero():
		return "waits for room, first in turn; its place is free " + moment(v.Kept.At, now)
	case v.Kept != nil:
		return "waits for room, first in turn; its place is kept, and nobody knows when it is free"
	case g.Running > 0:
		return fmt.Sprintf("runs with %d members; there is no room for the others", g.Running)
	}
	return "waits for room"
}

func incomplete(g Gang) string {
	if len(g.Missing.Gates) > 0 && g.Missing.Exist >= g.Needed {
		return "waits for its scheduling gates"
	}
	if g.Running > 0 {
		return fmt.Sprintf("runs with %s; the others of the %d that it needs have not all been made again",
			count(g.Running, "member"), g.Needed)
	}
	return fmt.Sprintf("is incomplete: it needs %s, and %d exist", count(g.Needed, "member"), g.Missing.Exist)
}

// place is where a placement is, in a few words.
func place(w Where) string {
	text := count(w.Nodes, "node")
	if w.Within != "" {
		text += " in " + w.Within
	}
	return text
}

// planned are the ranks that have no node yet.
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
		return text + "nobody"
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

// moment is an instant to come as people say it: the time of day, with its date if that is not today's, and how long until then.
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
