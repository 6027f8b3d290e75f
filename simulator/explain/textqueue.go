package explain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/scheduler/whatif"
)

// queue prints a line for each gang.
func (t *text) queue(q Queue) {
	if len(q.Gangs) == 0 {
		t.line(0, "no gang waits")
		return
	}
	waiting := 0
	for _, g := range q.Gangs {
		if !g.Starts {
			waiting++
		}
	}
	t.line(0, "%s in the queue or on the way to it; %d wait", count(len(q.Gangs), "gang"), waiting)
	rows := [][]string{{"#", "GANG", "PRIORITY", "WAITS", "MEMBERS", "DEVICES", "START", "WHY"}}
	for _, g := range q.Gangs {
		position := "-"
		if g.Position > 0 {
			position = strconv.Itoa(g.Position)
		}
		rows = append(rows, []string{
			position, g.Name, strconv.Itoa(int(g.Priority)), span(t.now.Sub(g.QueuedAt)),
			strconv.Itoa(g.Members), strconv.FormatInt(g.Accelerators, 10), brief(g.Start), short(g),
		})
	}
	t.table(rows)
}

// brief returns the start of a gang, in few words.
func brief(s *Start) string {
	if s == nil {
		return "-"
	}
	if s.At != nil {
		return s.Text
	}
	word, _, _ := strings.Cut(s.Text, " ")
	switch word = strings.TrimSuffix(word, ":"); word {
	case "never", "unknown":
		return word
	}
	return "soon"
}

// short returns the reason for a gang's wait, in few words.
func short(g Gang) string {
	switch s := g.Shortfall; {
	case g.Problem != "":
		return g.Problem
	case g.State == string(whatif.Fits) && g.Where != nil:
		return "fits on " + place(*g.Where)
	case g.Behind != nil:
		return "its nodes are reserved for " + few(owners(g.Behind.Reserved))
	case g.Preemption != nil:
		return "preempts " + victims(*g.Preemption)
	case s == nil || len(s.Nearest) == 0:
		return g.Answer
	case s.Never:
		return "would not fit an empty fleet"
	case s.Level == "":
		return fmt.Sprintf("the cluster holds %d of %d", s.Nearest[0].Holds, s.Members)
	default:
		return fmt.Sprintf("nearest %s %s holds %d of %d", s.Level, s.Nearest[0].Domain, s.Nearest[0].Holds, s.Members)
	}
}

// table aligns all columns but the last.
func (t *text) table(rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	for _, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-len([]rune(cell))+2))
			}
		}
		t.line(0, "%s", b.String())
	}
}
