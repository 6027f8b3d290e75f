package uncontrolled

import (
	"math"
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/simulator/integration/reality/rerun"
)

// Startup holds the times of starts on the idle cluster, at the median. Single and Gang are the time that a gang of one
// pod, and of more, held its nodes beyond the run time of its pods: from its first binding to the end of its last pod,
// less that run time. Arrival is the time from the submission to the first binding, Binding the part of it after the
// last pod was created.
type Startup struct{ Single, Gang, Arrival, Binding time.Duration }

// Handover is the time from the end of a gang to the first binding of one that waits for its nodes: changes are
// gathered before the binding.
func (s Startup) Handover() time.Duration {
	if s.Binding == 0 {
		return 0
	}
	return s.Binding + rerun.Gather
}

// Measure takes the duration of starts from the runs of gangs that did not wait.
func Measure(gangs []rerun.Gang, begin time.Time, runs []rerun.Run) Startup {
	var single, several, arrival, binding []time.Duration
	for _, g := range gangs {
		for _, run := range runs {
			if run.Gang != g.Name || run.Free.IsZero() {
				continue
			}
			arrival, binding = append(arrival, run.First.Sub(begin)-g.Submit), append(binding, run.First.Sub(run.Whole))
			if extra := run.Free.Sub(run.First) - g.RunTime; g.Members == 1 {
				single = append(single, extra)
			} else {
				several = append(several, extra)
			}
		}
	}
	return Startup{
		Single: median(single), Gang: median(several), Arrival: median(arrival), Binding: median(binding),
	}
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// unit is a factor of 1 in thousandths.
const unit = 1000

// Factor returns the factor of the simulator's startup costs (simulate --startup), in thousandths, with which a gang
// takes as long to start as was measured. published is the time of the factor 1, in seconds. The simulator rounds
// starts up to whole seconds, so that one of less than half a second is played as none.
func (s Startup) Factor(published int64) int64 {
	if s.Gang < time.Second/2 {
		return 0
	}
	return int64(math.Round(unit * s.Gang.Seconds() / float64(published)))
}
