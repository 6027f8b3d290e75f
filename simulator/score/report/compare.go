package report

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/lockstep-project/lockstep/simulator/score/compare"
)

// Comparison is the input of a page about several schedulers.
type Comparison struct {
	// Table compares all seeds.
	Table compare.Table
	// Runs are those of one seed, one for each scheduler, in the table's order: charts show them. They must be of one
	// scenario; maps are not drawn. There may be none.
	Runs []Input
}

// WriteComparison writes a page about several schedulers. Errors are of the writer, or of a series whose columns have
// different lengths.
func WriteComparison(w io.Writer, c Comparison) error {
	t := &c.Table
	p := page{
		Kind: "Lockstep: schedulers compared, seed by seed", Notices: t.Notes,
		Title: fmt.Sprintf("%s on %s, %s", strings.Join(t.Schedulers, ", "), t.Fleet, t.Trace),
		Facts: comparedFacts(&c), Paired: paired(t), Verdict: verdictOf(t),
	}
	if t.Watermark != "" {
		p.Alarms = append(p.Alarms, alarm{"Not comparable.", t.Watermark})
	}
	var d pageData
	for i := range c.Runs {
		in := &c.Runs[i]
		if err := in.check(); err != nil {
			return fmt.Errorf("writing the comparison: %w", err)
		}
		if in.Card.Partial != "" {
			p.Alarms = append(p.Alarms, alarm{"Partial result of " + in.Card.Scheduler + ".", in.Card.Partial})
		}
		d.addRun(in)
	}
	d.Arrival = comparedArrivals(t)
	p.arrivals(&d)
	p.compared(&c, &d)
	p.Foot = "Made by lockstep compare."
	return p.write(w, &d)
}

// comparedFacts returns the facts that all runs have in common.
func comparedFacts(c *Comparison) []fact {
	t := &c.Table
	seeds := make([]string, len(t.Seeds))
	for i, seed := range t.Seeds {
		seeds[i] = strconv.FormatUint(seed, 10)
	}
	all := []fact{
		{Name: "Fleet", Value: t.Fleet},
		{Name: "Trace", Value: t.Trace},
		{Name: "Seeds", Value: strings.Join(seeds, ", ")},
		{Name: "Load", Value: number(cmp.Or(t.Load, 1)) + " ×"},
		{Name: "Estimates", Value: estimates(t.Estimates)},
	}
	if len(c.Runs) > 0 {
		card := &c.Runs[0].Card
		all[0].Value = fmt.Sprintf("%s: %s nodes, %s GPUs", t.Fleet, count(card.Nodes), count(card.GPUs))
		all = append(all, kept(
			fact{Name: "Commit", Value: card.Commit},
			fact{Name: "Charts are of seed", Value: strconv.FormatUint(card.Seed, 10)},
			fact{Name: "Window", Value: window(card), Wide: true},
			fact{Name: "Speed was measured on", Value: card.Machine, Wide: true},
			fact{Name: "Source of the workload", Value: card.Source, Wide: true},
		)...)
	}
	return all
}

// pairedTable is the table of all numbers.
type pairedTable struct {
	// First is the one that the Others are compared with.
	First  string
	Others []string
	Rows   []pairedRow
	// Open shows the table unfolded: there is no verdict above it.
	Open bool
}

type pairedRow struct {
	Title, Formula, First string
	Others                []pairedCell
}

// pairedCell is a scheduler's mean, its difference to the first one's, and the verdict.
type pairedCell struct{ Mean, Difference, Verdict, Class string }

func paired(t *compare.Table) *pairedTable {
	if len(t.Schedulers) < 2 {
		return nil
	}
	p := &pairedTable{First: t.Schedulers[0], Others: t.Schedulers[1:], Open: t.Allocation != nil || t.Watermark != ""}
	for _, row := range t.Rows {
		if len(row.Means) != len(t.Schedulers) || len(row.Against) != len(p.Others) {
			continue
		}
		to := pairedRow{Title: row.Title, Formula: row.Formula, First: said(row.Unit, row.Means[0])}
		for i, d := range row.Against {
			to.Others = append(to.Others, pairedCellOf(row.Unit, row.Means[i+1], d))
		}
		p.Rows = append(p.Rows, to)
	}
	return p
}

func pairedCellOf(unit string, mean float64, d compare.Difference) pairedCell {
	c := pairedCell{Mean: said(unit, mean)}
	if d.Mean > 0 {
		c.Difference = "+" + said(unit, d.Mean)
	} else if d.Mean < 0 {
		c.Difference = "−" + said(unit, -d.Mean)
	}
	if d.Margin != nil && (d.Mean != 0 || *d.Margin != 0) {
		c.Difference += " ± " + said(unit, *d.Margin)
	}
	switch d.Verdict {
	case compare.Better, compare.BetterOnce:
		c.Verdict, c.Class = "▲ "+string(d.Verdict), "better"
	case compare.Worse, compare.WorseOnce:
		c.Verdict, c.Class = "▼ "+string(d.Verdict), "worse"
	case compare.Equal:
		c.Verdict = "= equal"
	case compare.Unclear:
		c.Verdict = "≈ unclear"
	case compare.NoVerdict:
	}
	return c
}

// comparedArrivals are the means of all seeds, of runs in which nothing ends.
func comparedArrivals(t *compare.Table) []arrival {
	if t.Allocation == nil {
		return nil
	}
	var all []arrival
	for _, policy := range t.Allocation.Policies {
		a := arrival{Name: policy.Name}
		for i, mark := range t.Allocation.Arrivals {
			if i < len(policy.Allocated) {
				a.X, a.Y = append(a.X, float64(mark)), append(a.Y, round(policy.Allocated[i].Mean, 3))
			}
		}
		all = append(all, a)
	}
	return all
}
