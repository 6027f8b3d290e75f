package compare

import (
	"cmp"
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// significance is the chance of one false mark or more among the cells of a table.
const significance = 0.05

// Corrected returns the table with verdicts that, with a confidence of 95 %, are all right, where names are the rows
// that people read and all their cells are one family of tests: a hundred cells that are tested one by one have five
// marks of nothing.
//
// It is Holm's step-down procedure (Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian
// Journal of Statistics 6, 1979), which needs no assumption about how cells depend on each other: of n tests, the k-th
// smallest p is multiplied by n+1-k, and counts no less than the one before it. A difference that is not significant is
// Unclear. Cells of a single seed, without a difference or without a better direction are no tests. Other rows are
// unchanged.
func (t Table) Corrected(names []string) Table {
	return t.CorrectedFor(func(row, _ string) bool { return slices.Contains(names, row) })
}

// CorrectedFor is Corrected where the family are the cells of the rows and schedulers that asked reports.
func (t Table) CorrectedFor(asked func(row, scheduler string) bool) Table {
	t.Rows = slices.Clone(t.Rows)
	var tests []*Difference
	for i, row := range t.Rows {
		t.Rows[i].Against = slices.Clone(row.Against)
		for k := range t.Rows[i].Against {
			d := &t.Rows[i].Against[k]
			if asked(row.Name, t.Schedulers[k+1]) &&
				(d.Verdict == Better || d.Verdict == Worse || d.Verdict == Unclear) {
				p := d.p()
				d.P = &p
				tests = append(tests, d)
			}
		}
	}
	slices.SortStableFunc(tests, func(a, b *Difference) int { return cmp.Compare(*a.P, *b.P) })
	last := 0.0
	for k, d := range tests {
		last = max(last, min(1, *d.P*float64(len(tests)-k)))
		*d.P = measure.Tidy(last)
		if last > significance {
			d.Verdict = Unclear
		}
	}
	return t
}

// p returns the two-sided chance of a difference, by Student's t: the margin is its 95 % quantile times the standard
// error.
func (d Difference) p() float64 {
	switch {
	case d.Margin == nil || d.Pairs < 2 || d.Mean == 0:
		return 1
	case *d.Margin == 0:
		return 0
	}
	t := math.Abs(d.Mean) / *d.Margin * Quantile(d.Pairs-1)
	return max(0, 1-within(t, d.Pairs-1))
}

// Bounded returns the table with the lower bounds for any scheduler, by the names of rows.
func (t Table) Bounded(bounds map[string]float64) Table {
	t.Rows = slices.Clone(t.Rows)
	for i, row := range t.Rows {
		if value, known := bounds[row.Name]; known {
			t.Rows[i].Bound = &value
		}
	}
	return t
}
