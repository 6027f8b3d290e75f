package progress

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"charm.land/lipgloss/v2"
)

// Sizes of a picture, in columns and lines.
const (
	mostWidth  = 120
	labelWidth = 10
	// tableHead is the number of lines above the first gang: an empty one, the sum, the columns.
	tableHead = 3
	// tableWidth is the width of the columns between the first and the last.
	tableWidth = 25
)

// picture is the content of a screen; its String is the same for the same values.
type picture struct {
	width, height int
	theme         theme
	// views are those of the runs at hand: the first is drawn, the others are a line each.
	views  []View
	footer string
}

// String draws. Every line fits into the width, and all into the height, less the line of the cursor. As long as there
// is a footer, there are equally many lines whatever waits, so that a terminal has nothing to scroll.
func (p picture) String() string {
	p.width = min(p.width, mostWidth)
	if len(p.views) == 0 {
		return p.fit([]string{"the scene is being set", p.footer})
	}
	v, others := &p.views[0], p.views[1:]
	out := append([]string{p.title(v), p.speed(v)}, p.jobs(v)...)
	out = append(append(out, p.accelerators(v)...), p.decisions(v))
	for i := range others {
		if line, err := plainLine(&others[i]); err == nil {
			out = append(out, p.theme.faint.Render(shortened(line, p.width)))
		}
	}
	most := min(len(out)+tableHead+mostGangs+1, p.height-1)
	out = append(out, p.queue(v, most-len(out)-tableHead-1)...)
	if p.footer != "" {
		out = append(out, make([]string, max(most-len(out)-1, 0))...)
		out = append(out, p.footer)
	}
	return p.fit(out)
}

// fit cuts long lines, and of too many lines those at the end, the footer excepted.
func (p picture) fit(drawn []string) string {
	most := max(p.height-1, 1)
	cut := lipgloss.NewStyle().MaxWidth(p.width)
	var b strings.Builder
	for i, line := range drawn {
		if i >= most-1 && i < len(drawn)-1 {
			continue
		}
		b.WriteString(strings.TrimRight(cut.Render(line), " "))
		if i < len(drawn)-1 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// title names the run, its trace and its fleet, and on the right its state.
func (p picture) title(v *View) string {
	left := p.theme.strong.Render(title(v))
	if left != "" {
		left += "  "
	}
	left += printable(v.Trace) + " on " + printable(v.Fleet)
	state := ""
	switch {
	case v.Over && v.Ended == v.Jobs:
		state = p.theme.good.Render("done")
	case v.Over:
		state = p.theme.alarm.Render("over, " + grouped(v.Jobs-v.Ended) + " not ended")
	case v.Paused:
		state = p.theme.alarm.Render("paused")
	}
	gap := p.width - lipgloss.Width(left) - lipgloss.Width(state)
	return left + strings.Repeat(" ", max(gap, 1)) + state
}

func (p picture) speed(v *View) string {
	line := fmt.Sprintf("t=%s  %s× as fast  %s events/s  %s elapsed",
		span(v.Virtual), short(v.speed), short(v.events), span(v.Wall))
	if left, ok := v.Left(); ok && !v.Paused {
		line += "  about " + span(max(left, time.Second)) + " left"
	}
	return line
}

func (p picture) jobs(v *View) []string {
	done := percent(v.Ended, v.Jobs)
	says := fmt.Sprintf(" %3d%%  %s of %s", done, grouped(v.Ended), grouped(v.Jobs))
	width := max(p.width-labelWidth-len(says), 0)
	full := width * done / 100
	bar := p.theme.good.Render(strings.Repeat("█", full)) + p.theme.faint.Render(strings.Repeat("░", width-full))
	return []string{
		"",
		p.theme.label("jobs") + bar + says,
		p.theme.label("") + fmt.Sprintf("%s running, %s waiting, %s to come",
			grouped(v.Running), grouped(v.Waiting), grouped(v.Jobs-v.Submitted)),
	}
}

func (p picture) accelerators(v *View) []string {
	says := fmt.Sprintf("%.1f%%  %s of %s in use", 100*v.Allocation(), grouped(v.GPUsInUse), grouped(v.GPUs))
	if away := v.Fitted - v.GPUs; away > 0 {
		says += ", " + grouped(away) + " out of service"
	}
	out := []string{
		p.theme.label("GPUs") + says,
		p.theme.label("so far") + p.theme.chart.Render(spark(v.Uses, p.width-labelWidth)),
	}
	if len(v.Domains) > 0 {
		strip, cut := v.Domains, ""
		if room := p.width - labelWidth; len(strip) > room {
			strip, cut = strip[:max(room-1, 0)], "…"
		}
		out = append(out, p.theme.label(printable(v.Level))+p.theme.chart.Render(heat(strip))+cut)
	}
	return out
}

func (p picture) decisions(v *View) string {
	says := "none yet"
	if v.Decisions > 0 {
		says = fmt.Sprintf("p50 %s, p99 %s, %s made", latency(v.P50), latency(v.P99), grouped(v.Decisions))
	}
	return p.theme.label("decisions") + says
}

// queue is the sum of the waiting gangs, and a table of as many gangs as there is room for.
func (p picture) queue(v *View, room int) []string {
	if v.Waiting == 0 {
		return nil
	}
	sum := fmt.Sprintf("%s %s %s for %s", p.theme.strong.Render(grouped(v.Waiting)), noun(v.Waiting, "gang"),
		verb(v.Waiting), counted(v.WaitingGPUs, "GPU"))
	if v.Waiting > 1 {
		sum += fmt.Sprintf(", the largest for %s, the longest since %s", grouped(v.LargestWaiting), span(v.OldestWait))
	}
	out := []string{"", sum}
	if room <= 0 || len(v.Queue) == 0 {
		return out
	}
	name := max(min(p.width/4, 28), 8)
	row := func(cells ...string) string {
		return fmt.Sprintf("%s %7s %6s %7s  %s", padded(cells[0], name), cells[1], cells[2], cells[3],
			shortened(cells[4], max(p.width-name-tableWidth, 1)))
	}
	out = append(out, p.theme.faint.Render(row("waiting", "GPUs", "pods", "waits", "why")))
	for i, g := range v.Queue {
		if i == room {
			break
		}
		out = append(out, row(printable(g.Name), grouped(g.GPUs), grouped(g.Pods), span(g.Waits), g.Why))
	}
	return out
}

// padded is a text that takes as many columns as said.
func padded(text string, width int) string {
	fits := shortened(text, width)
	return fits + strings.Repeat(" ", max(width-lipgloss.Width(fits), 0))
}

// shortened is a text that takes no more columns than said.
func shortened(text string, width int) string {
	if lipgloss.Width(text) <= width {
		return text
	}
	runes := []rune(text)
	for len(runes) > 0 && lipgloss.Width(string(runes)) > width-1 {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "…"
}

// printable is a name out of a file without characters that a terminal would obey.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, name)
}

func verb(n int) string {
	if n == 1 {
		return "waits"
	}
	return "wait"
}
