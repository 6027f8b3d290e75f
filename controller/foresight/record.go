package foresight

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// remembered is of how many jobs a record is made, the last that completed.
	remembered = 16
	// enough is of how many jobs a record says something.
	enough = 3
	// shortest is the shortest promise that counts: what is nearly over is no test of foresight.
	shortest = time.Minute
	// worst bounds what a record says, both ways.
	worst = 8
)

// Outcome is how one completed job compares with what its trainer said first.
type Outcome struct {
	UID types.UID
	// Promised is the first report of the job's run, and Ended when the job completed.
	Promised Report
	Ended    time.Time
}

// factor is how much longer the job took than it said.
func (o Outcome) factor() float64 {
	return o.Ended.Sub(o.Promised.At).Seconds() / o.Promised.End.Sub(o.Promised.At).Seconds()
}

// Record is what first reports of the jobs of one runtime in one namespace were worth. The zero value is empty.
type Record struct{ outcomes []Outcome }

// With is the record with one more outcome. It does not matter in which order outcomes come, nor how often.
func (r Record) With(outcome Outcome) Record {
	if outcome.Promised.End.Sub(outcome.Promised.At) < shortest || outcome.Ended.Before(outcome.Promised.At) {
		return r
	}
	outcomes := slices.Clone(r.outcomes)
	outcomes = slices.DeleteFunc(outcomes, func(known Outcome) bool { return known.UID == outcome.UID })
	outcomes = append(outcomes, outcome)
	slices.SortFunc(outcomes, func(a, b Outcome) int {
		if order := a.Ended.Compare(b.Ended); order != 0 {
			return order
		}
		return slices.Compare([]byte(a.UID), []byte(b.UID))
	})
	return Record{outcomes[max(0, len(outcomes)-remembered):]}
}

// Factor is how much longer jobs took than they said first, from 1/8 to 8: the median, and 1 as long as hardly any has ended.
func (r Record) Factor() float64 {
	if len(r.outcomes) < enough {
		return 1
	}
	factors := make([]float64, len(r.outcomes))
	for i, outcome := range r.outcomes {
		factors[i] = outcome.factor()
	}
	slices.Sort(factors)
	return min(max(factors[len(factors)/2], 1.0/worst), worst)
}
