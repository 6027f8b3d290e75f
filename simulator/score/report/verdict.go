package report

import (
	"math"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/compare/criteria"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// verdict is the beginning of a comparison: sentences, the figures that decide, and the waits by size.
type verdict struct {
	// First is the scheduler that the others are compared with.
	First string
	// Lines is a sentence for each other scheduler.
	Lines  []string
	Titles []string
	Rows   []decisive
	Panels []classPanel
}

// decisive is a scheduler's row of the figures that decide.
type decisive struct {
	Scheduler string
	Cells     []pairedCell
}

// classPanel compares one scheduler with the first, by the size of jobs.
type classPanel struct {
	Other string
	Rows  []classRow
}

// classRow is about the jobs of a size. Shift is the time by which the first scheduler starts them earlier or later.
type classRow struct {
	Name, Jobs          string
	Ours, Theirs, Shift string
	// Earlier and Later are the lengths of the bars, in per cent of the longest; at most one is above 0.
	Earlier, Later int
}

// verdictOf returns the opening of a comparison, nil if nothing follows from its table.
func verdictOf(t *compare.Table) *verdict {
	v := &verdict{Lines: t.InWords()}
	if len(v.Lines) == 0 {
		return nil
	}
	v.First = t.Schedulers[0]
	head := t.Headline()
	rows := make([]decisive, len(head.Schedulers))
	for i, name := range head.Schedulers {
		rows[i].Scheduler = name
	}
	for _, c := range criteria.All() {
		at := slices.IndexFunc(head.Rows, func(r compare.Row) bool { return r.Name == c.Row })
		if at < 0 {
			continue
		}
		v.Titles = append(v.Titles, c.Title)
		row := &head.Rows[at]
		for i := range rows {
			cell := pairedCell{Mean: unbroken(decided(row, row.Means[i]))}
			if i > 0 {
				of := pairedCellOf(row.Unit, row.Means[i], row.Against[i-1])
				cell.Verdict, cell.Class = of.Verdict, of.Class
				if row.Against[i-1].Verdict == compare.Unclear {
					cell.Verdict = "≈ may be chance"
				}
			}
			rows[i].Cells = append(rows[i].Cells, cell)
		}
	}
	v.Rows = rows
	v.panels(&head)
	return v
}

// decided writes a figure that decides: goodput in per cent.
func decided(row *compare.Row, value float64) string {
	if row.Unit == "1" {
		return percent(value)
	}
	return said(row.Unit, value)
}

// panels adds the waits by size. Bars are logarithmic and share one scale, so that minutes are seen beside days.
func (v *verdict) panels(head *compare.Table) {
	const atLeast, least, whole = 60, 3, 100
	most := 0.0
	length := func(seconds float64) float64 { return math.Log1p(math.Abs(seconds) / atLeast) }
	for _, c := range head.Classes {
		for _, d := range c.Wait.Against {
			most = max(most, length(d.Mean))
		}
	}
	for i, other := range head.Schedulers[1:] {
		panel := classPanel{Other: other}
		for _, c := range head.Classes {
			d := c.Wait.Against[i]
			row := classRow{
				Name: c.Name, Jobs: of(c),
				Ours: unbroken(span(c.Wait.Means[i+1] - d.Mean)), Theirs: unbroken(span(c.Wait.Means[i+1])),
				Shift: d.Shift(c.Wait.Means[i+1]),
			}
			bar := 0
			if most > 0 && math.Abs(d.Mean) >= 1 {
				bar = max(least, int(math.Round(whole*length(d.Mean)/most)))
			}
			if d.Mean > 0 {
				row.Earlier = bar
			} else {
				row.Later = bar
			}
			panel.Rows = append(panel.Rows, row)
		}
		v.Panels = append(v.Panels, panel)
	}
}

// unbroken joins numbers with their units, so that lines of a narrow screen break between such pairs only.
func unbroken(text string) string {
	words := strings.Fields(text)
	var pairs []string
	for pair := range slices.Chunk(words, 2) {
		pairs = append(pairs, strings.Join(pair, "\u00a0"))
	}
	return strings.Join(pairs, " ")
}

// of returns the number of jobs of a class, and their GPU-hours.
func of(c compare.Class) string {
	return measure.Count(
		int64(math.Round(c.Jobs)),
	) + " jobs, " + measure.Count(
		int64(math.Round(c.GPUHours)),
	) + " GPU-h"
}
