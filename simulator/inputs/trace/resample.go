package trace

import (
	"fmt"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// week is the unit that Resample draws: long enough that a day's and a weekend's rhythm stay as they were recorded.
const week = 7 * 24 * time.Hour

// Resample draws another history from a recorded one, so that several seeds show how much depends on the recorded
// weeks: as many weeks as the trace has whole ones, each drawn from these with replacement (a block bootstrap; Künsch,
// Annals of Statistics 17, 1989). Weeks are counted from the beginning of the trace, and jobs after the last whole one
// are never drawn. A job retains everything but its instant and its ID, which gets the week into which it is put as a
// suffix.
//
// Seed 0 is the trace as recorded. A trace that lasts less than two weeks, or that has events of nodes, is bad input
// for all other seeds. The drawn order never happened, so it counts as synthetic; the source line describes the
// resampling, and is the same for all seeds.
func Resample(t Trace, seed uint64) (Trace, error) {
	if seed == 0 {
		return t, nil
	}
	var last time.Duration
	for _, j := range t.Jobs {
		last = max(last, j.Submit)
	}
	whole := int(last / week)
	switch {
	case len(t.Events) > 0:
		return Trace{}, &badinput.Error{
			Where: "trace " + t.Name,
			What:  "weeks cannot be drawn of a trace with events of nodes",
			Mend:  "use seed 0, as recorded",
		}
	case whole < 2:
		return Trace{}, &badinput.Error{
			Where: "trace " + t.Name,
			What:  fmt.Sprintf("weeks cannot be drawn of a trace that lasts %s", last),
			Mend:  "use seed 0, as recorded, or a trace of two weeks or more",
		}
	}
	weeks := make([][]Job, whole)
	for _, j := range t.Jobs {
		if at := int(j.Submit / week); at < whole {
			weeks[at] = append(weeks[at], j)
		}
	}
	drawn, random := t, chance(seed, streamWeeks)
	drawn.Jobs, drawn.Synthetic = nil, true
	drawn.Source += fmt.Sprintf("; of its %d whole weeks as many were drawn by the seed, with replacement", whole)
	for to := range whole {
		from := random.IntN(whole)
		for _, j := range weeks[from] {
			j.ID = fmt.Sprintf("%s-w%02d", j.ID, to+1)
			j.Submit += time.Duration(to-from) * week
			drawn.Jobs = append(drawn.Jobs, j)
		}
	}
	return drawn.sorted(), nil
}
