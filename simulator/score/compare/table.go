package compare

import (
	"math"

	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// Table is a comparison. The first scheduler is the one that the others are compared with.
type Table struct {
	Schedulers []string `json:"schedulers"`
	// Seeds are those that every scheduler has played, ascending.
	Seeds     []uint64 `json:"seeds"`
	Fleet     string   `json:"fleet"`
	Trace     string   `json:"trace"`
	Load      float64  `json:"load"`
	Estimates float64  `json:"estimates"`
	Synthetic bool     `json:"synthetic"`
	// Costs are the settings that cost time; nil if nothing but running does.
	Costs *cost.Settings `json:"costs,omitempty"`
	// Watermark is the reason why nothing follows from this table; empty if the runs are of the same inputs.
	Watermark string `json:"watermark,omitempty"`
	// Notes are those that a reader needs, one line each.
	Notes []string `json:"notes,omitempty"`
	Rows  []Row    `json:"rows"`
	// Classes compare the waits of jobs by their size, small ones first; none for runs of openb.
	Classes []Class `json:"classes,omitempty"`
	// Allocation is the table for runs of openb only.
	Allocation *Allocation `json:"allocation_at_arrival,omitempty"`
}

// Row is a number of the scorecard.
type Row struct {
	// Name, Title, Unit, Better and Formula are those of measure.Definition.
	Name    string            `json:"name"`
	Title   string            `json:"title"`
	Unit    string            `json:"unit"`
	Better  measure.Direction `json:"better"`
	Formula string            `json:"formula"`
	// Means are the means over all seeds, by scheduler.
	Means []float64 `json:"means"`
	// Bound is the lower bound for every scheduler (package bound), mean of the seeds; nil if none is known.
	Bound *float64 `json:"bound,omitempty"`
	// Against are the differences to the first scheduler, of the second, the third and so on.
	Against []Difference `json:"against"`
}

// Difference is the amount by which a scheduler's number is above that of the first, seed by seed.
type Difference struct {
	Mean float64 `json:"mean"`
	// Margin is half of the 95 % interval around Mean; nil with a single seed, which shows nothing about others.
	Margin *float64 `json:"margin"`
	// Pairs is the number of seeds that both have played, Agree the number of those whose difference has Mean's sign.
	Pairs   int     `json:"pairs"`
	Agree   int     `json:"agree"`
	Verdict Verdict `json:"verdict"`
	// P is the chance, from 0 to 1, of such a difference or a larger one if there is none, corrected for the other
	// cells (Corrected); nil without a correction.
	P *float64 `json:"p,omitempty"`
}

// Verdict is the conclusion from a difference for the scheduler that is compared.
type Verdict string

// The verdicts.
const (
	// Better and Worse say that the interval is on one side of 0.
	Better Verdict = "better"
	Worse  Verdict = "worse"
	// Equal says that there is no difference with any seed, Unclear that the interval contains 0.
	Equal   Verdict = "equal"
	Unclear Verdict = "unclear"
	// BetterOnce and WorseOnce are of a single seed.
	BetterOnce Verdict = "better once"
	WorseOnce  Verdict = "worse once"
	// NoVerdict is for numbers without a better direction.
	NoVerdict Verdict = ""
)

// differ compares numbers of a scheduler with those of the first, seed by seed.
func differ(first, other []float64, better measure.Direction) Difference {
	differences := make([]float64, len(first))
	for i := range first {
		differences[i] = other[i] - first[i]
	}
	mean, deviation := spread(differences)
	mean = measure.Tidy(mean)
	d := Difference{Mean: mean, Pairs: len(differences)}
	for _, v := range differences {
		if sign(v) == sign(mean) {
			d.Agree++
		}
	}
	margin := 0.0
	if n := len(differences); n > 1 {
		margin = measure.Tidy(Quantile(n-1) * deviation / math.Sqrt(float64(n)))
		d.Margin = &margin
	}
	d.Verdict = verdict(d, margin, better)
	return d
}

func verdict(d Difference, margin float64, better measure.Direction) Verdict {
	good := d.Mean > 0 == (better == measure.Higher)
	switch {
	case better == measure.Neither || d.Pairs == 0:
		return NoVerdict
	case d.Mean == 0 && margin == 0:
		return Equal
	case margin >= math.Abs(d.Mean):
		return Unclear
	case d.Margin == nil && good:
		return BetterOnce
	case d.Margin == nil:
		return WorseOnce
	case good:
		return Better
	}
	return Worse
}

func sign(x float64) int {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}
