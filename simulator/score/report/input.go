package report

import (
	"errors"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// Input is the input of a report.
type Input struct {
	Card measure.Scorecard
	// Series is the state of the cluster over time (measure.Tally.Series); it may be empty.
	Series measure.Series
	// Outcomes are those of the jobs (measure.Tally.Outcomes); there may be none.
	Outcomes []measure.Outcome
	// Record holds the places of jobs, and the costs of decisions; nil for runs without, such as those of openb.
	Record *Recorder
}

// check refuses columns of different lengths.
func (in *Input) check() error {
	s, n := &in.Series, len(in.Series.Seconds)
	for _, length := range []int{
		len(s.Used), len(s.Demanded), len(s.Capacity), len(s.Fragmentation), len(s.Largest), len(s.Waiting),
		len(s.OldestSeconds),
	} {
		if length != n {
			return errors.New("the columns of the series have different lengths")
		}
	}
	return nil
}

// classes are the names of the size classes that have jobs, small ones first.
func (in *Input) classes() []string {
	names := make([]string, len(in.Card.Classes))
	for i, class := range in.Card.Classes {
		names[i] = class.Name
	}
	return names
}
