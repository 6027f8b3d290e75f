package foresight

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// remembered is the number of jobs in a record, the last ones that completed.
	remembered = 16
	// enough is the number of jobs from which a record is used.
	enough = 3
	// shortest is the shortest promise that counts: the end of a job that has nearly ended is no test.
	shortest = time.Minute
	// worst bounds the factor of a record, both ways.
	worst = 8
)

// Outcome compares one completed job with the first report of its trainer.
type Outcome struct {
	UID types.UID
	// Promised is the first report of the job's run, and Ended when the job completed.
	Promised Report
	Ended    time.Time
}

// factor returns the job's actual run time over the reported one.
func (o Outcome) factor() float64 {
	return o.Ended.Sub(o.Promised.At).Seconds() / o.Promised.End.Sub(o.Promised.At).Seconds()
}

// Record holds the accuracy of the first reports of the jobs of one runtime in one namespace. The zero value is empty.
type Record struct{ outcomes []Outcome }

// With returns the record with one more outcome. The order and the repetition of outcomes do not matter.
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

// Factor returns the median of actual over first reported run times, from 1/8 to 8; 1 as long as hardly any job has
// ended.
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
