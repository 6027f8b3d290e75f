package summary

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const defaultWidth = 100

// Style configures WriteTable.
type Style struct {
	// Color marks outcomes with terminal colors; leave it off where the output is no terminal.
	Color bool
	// Width is the width at which lines are wrapped; 0 means 100. Words are never broken, nor is the table of jobs.
	Width int
}

// WriteTable prints one line for each job, and then the nodes of its ranks or the reason why they have none.
func WriteTable(w io.Writer, r Report, style Style) error {
	style.Width = cmp.Or(style.Width, defaultWidth)
	names := newNaming(r)
	var b strings.Builder
	writeJobs(&b, r, names, style)
	for _, job := range r.Jobs {
		b.WriteString("\n")
		writeRanks(&b, job, names, style)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("writing the table of jobs: %w", err)
	}
	return nil
}

// column is one column of the table of jobs.
type column struct {
	title string
	right bool // aligned
	width int
}

func writeJobs(b *strings.Builder, r Report, names naming, style Style) {
	columns := []column{
		{title: "JOB"},
		{title: "FRAMEWORK"},
		{title: "RANKS", right: true},
		{title: "WHERE"},
		{title: "WAIT", right: true},
		{title: "RUN", right: true},
		{title: "OUTCOME"},
	}
	rows := [][]string{make([]string, len(columns))}
	for i, column := range columns {
		rows[0][i] = column.title
	}
	for _, job := range r.Jobs {
		run := "-"
		if job.RunSeconds > 0 {
			run = duration(job.RunSeconds)
		}
		rows = append(rows, []string{
			title(job), job.Framework, strconv.Itoa(len(job.Ranks)), names.where(job),
			duration(job.WaitSeconds), run, style.outcome(job.Outcome),
		})
	}
	for _, row := range rows {
		for i, cell := range row {
			columns[i].width = max(columns[i].width, utf8.RuneCountInString(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(columns[i].pad(cell) + "  ")
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
}

func (c column) pad(cell string) string {
	padding := strings.Repeat(" ", c.width-utf8.RuneCountInString(cell))
	if c.right {
		return padding + cell
	}
	return cell + padding
}

// title is a job's name, with its namespace unless that is the default one.
func title(job Job) string {
	if job.Namespace == "" || job.Namespace == "default" {
		return job.Name
	}
	return job.Namespace + "/" + job.Name
}

func duration(seconds float64) string {
	if seconds < 60 {
		return fmt.Sprintf("%.1fs", seconds)
	}
	return (time.Duration(seconds+0.5) * time.Second).String()
}

// outcome colors the table's last column, whose padding is cut off anyway.
func (s Style) outcome(outcome string) string {
	colors := map[string]string{Complete: "32", Failed: "31", Unplaced: "33"}
	if !s.Color || colors[outcome] == "" {
		return outcome
	}
	return "\x1b[" + colors[outcome] + "m" + outcome + "\x1b[0m"
}

const indent = "    "

// writeRanks prints the places of a job's ranks: their common domains in the first line, and below it each group of
// ranks that share the rest.
func writeRanks(b *strings.Builder, job Job, names naming, style Style) {
	placed := slices.DeleteFunc(slices.Clone(job.Ranks), func(r Rank) bool { return r.Node == "" })
	shared, split := names.sharedLevels(placed)
	b.WriteString(title(job))
	if len(placed) > 0 && len(shared) > 0 {
		b.WriteString(" in " + names.path(placed[0], shared))
	}
	b.WriteString("\n")
	groups := names.groups(placed, split)
	width := 0
	for _, group := range groups {
		width = max(width, len(group.path))
	}
	for _, group := range groups {
		head := indent
		if width > 0 {
			head += fmt.Sprintf("%-*s  ", width, group.path)
		}
		b.WriteString(wrap(head, spans(group.ranks), style.Width))
	}
	if missing := rankList(job.Ranks); missing != "" {
		b.WriteString(wrap(indent, strings.SplitAfter("not placed: "+missing, " "), style.Width))
	}
	if job.Reason != "" {
		b.WriteString(wrap(indent, strings.SplitAfter(job.Reason, " "), style.Width))
	}
}

// wrap puts pieces behind head and breaks lines between them; further lines begin below the first piece.
func wrap(head string, pieces []string, width int) string {
	var b strings.Builder
	line := head
	empty := true
	for _, piece := range pieces {
		if !empty && utf8.RuneCountInString(line+strings.TrimRight(piece, " ")) > width {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat(" ", len(head))
		}
		line += piece
		empty = false
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	return b.String()
}
