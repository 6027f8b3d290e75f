// Package criteria judges a scheduler by four figures in the order of their importance, comparison by comparison: goodput,
// the wait by GPU-hours, the mean wait and the longest wait. Each is measured against the reference that does best, and
// a figure is missed if any reference beats it by more than the criterion allows.
//
//	for _, c := range criteria.All() {
//		finding := c.Judge(table, roles)
//	}
package criteria

import (
	"slices"

	"github.com/lockstep-project/lockstep/simulator/score/compare"
)

// Reference names the schedulers with whose figures a criterion compares.
type Reference int

// The references.
const (
	// Rivals are all schedulers of others.
	Rivals Reference = iota
	// Greedy are the rivals that start any job that fits, whichever jobs wait before it.
	Greedy
	// Foresight is the judged scheduler with perfect knowledge of ends.
	Foresight
)

// Roles names the schedulers that are references. Schedulers without a role are not measured against.
type Roles struct {
	Rivals, Greedy, Foresight []string
}

// of returns the names of a reference.
func (r Roles) of(reference Reference) []string {
	switch reference {
	case Rivals:
		return r.Rivals
	case Greedy:
		return r.Greedy
	case Foresight:
		return r.Foresight
	}
	return nil
}

// Criterion is a demand on one figure of the first scheduler of a table.
type Criterion struct {
	// Title is the figure's name for people, Demand the demand as a clause that follows "Lockstep's".
	Title, Demand string
	// Row is the figure's name in compare.Table, Scale turns it into Unit: per cent, minutes ("min") or hours ("h").
	Row   string
	Scale float64
	Unit  string
	// Higher is set if more is better.
	Higher bool
	// Against are the references.
	Against Reference
	// Factor, 1 or more, multiplies a reference's figure to the worst one that still passes; it is for figures that are
	// better if smaller.
	Factor float64
	// Slack, in the row's own unit, is the amount by which a figure may be worse however small the reference's is.
	Slack float64
}

const (
	minute = 60
	hour   = 3600
	// percent turns fractions into per cent.
	percent = 100
	// greedyFactor and greedySlack (seconds) bound the mean wait above that of the best greedy rival: a scheduler that
	// reserves places for large gangs makes small jobs wait for them, and half a minute is as long as a pod takes to
	// start.
	greedyFactor, greedySlack = 1.1, 30
	// second and hundredth (of a percentage point of goodput) count as equal: less is not to be seen in any table.
	second, hundredth = 1, 0.0001
	// foresightFactor bounds the longest wait above that with perfect knowledge of ends.
	foresightFactor = 1.15
)

// All returns the criteria, the most important one first.
func All() []Criterion {
	return []Criterion{
		{
			Title: "goodput", Demand: "goodput is no lower than the best rival's (to 0.01 percentage points)",
			Row: "goodput.mean", Scale: percent, Unit: "%", Higher: true, Against: Rivals, Factor: 1, Slack: hundredth,
		},
		{
			Title: "wait by GPU-hours", Demand: "wait by GPU-hours is no longer than the best rival's (to a second)",
			Row: "by_gpu_hours.wait_seconds_mean", Scale: 1.0 / hour, Unit: "h", Against: Rivals,
			Factor: 1, Slack: second,
		},
		{
			Title:   "mean wait",
			Demand:  "mean wait is at most 1.1 times that of the best greedy rival, or within 30 s of it",
			Row:     "wait_seconds.mean",
			Scale:   1.0 / minute,
			Unit:    "min",
			Against: Greedy,
			Factor:  greedyFactor,
			Slack:   greedySlack,
		},
		{
			Title:   "longest wait",
			Demand:  "longest wait is at most 1.15 times that with perfect knowledge of ends (lockstep:perfect)",
			Row:     "wait_seconds.max",
			Scale:   1.0 / hour,
			Unit:    "h",
			Against: Foresight,
			Factor:  foresightFactor,
		},
	}
}

// Asked reports whether a criterion compares the figure of a row with a scheduler's. The cells for which it does are
// the family of tests of a verdict (see compare.Table.CorrectedFor): with those of figures and variants that no
// criterion asks about, a loss would count as chance the sooner, the more columns a table has.
func Asked(roles Roles) func(row, scheduler string) bool {
	return func(row, scheduler string) bool {
		return slices.ContainsFunc(All(), func(c Criterion) bool {
			return c.Row == row && slices.Contains(roles.of(c.Against), scheduler)
		})
	}
}

// Mark is a judgment.
type Mark int

// The marks.
const (
	// Open says that no reference played, or that the table lacks the figure.
	Open Mark = iota
	Met
	Missed
)

// Finding is a table's verdict about a criterion.
type Finding struct {
	Mark Mark
	// Reference is the scheduler that is hardest to match. Ours and Theirs are the figures in the row's own unit, means
	// of the seeds that both have played.
	Reference    string
	Ours, Theirs float64
	// Pairs is the number of these seeds.
	Pairs int
	// Verdict is that of the reference's figure against ours: Better says that the difference is significant (after
	// Corrected: by Holm).
	Verdict compare.Verdict
}

// Judge measures the first scheduler of a table. With several references the finding is about the one by whose figure
// ours is worst off.
func (c Criterion) Judge(t compare.Table, roles Roles) Finding {
	at := slices.IndexFunc(t.Rows, func(r compare.Row) bool { return r.Name == c.Row })
	if at < 0 {
		return Finding{}
	}
	row, worst, most := t.Rows[at], Finding{}, 0.0
	for i, name := range t.Schedulers[1:] {
		if !slices.Contains(roles.of(c.Against), name) || i >= len(row.Against) || row.Against[i].Pairs == 0 {
			continue
		}
		d, theirs := row.Against[i], row.Means[i+1]
		f := Finding{
			Mark: Met, Reference: name, Ours: theirs - d.Mean, Theirs: theirs, Pairs: d.Pairs, Verdict: d.Verdict,
		}
		excess := c.excess(f)
		if excess > 0 {
			f.Mark = Missed
		}
		if worst.Mark == Open || excess > most {
			worst, most = f, excess
		}
	}
	return worst
}

// excess is the amount by which our figure exceeds the reference's allowance; 0 or less if it is met.
func (c Criterion) excess(f Finding) float64 {
	if c.Higher {
		return f.Theirs - f.Ours - c.Slack
	}
	return f.Ours - max(c.Factor*f.Theirs, f.Theirs+c.Slack)
}

// Significant reports whether the reference's figure is better than ours beyond chance, by the table's procedure.
func (f Finding) Significant() bool { return f.Verdict == compare.Better }
