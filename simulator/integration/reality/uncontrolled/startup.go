package uncontrolled

import (
	"math"
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/simulator/integration/reality/rerun"
)

// Startup is what starts took on the idle cluster, at the median: the time that a gang held its nodes, from its first binding to the end of its
// last pod, less the run time of its pods. Arrival is the time from the submission to the first binding.
type Startup struct{ Single, Gang, Arrival time.Duration }

// Measure reads what starts took from the runs of gangs that did not wait.
func Measure(gangs []rerun.Gang, begin time.Time, runs []rerun.Run) Startup {
	var single, several, arrival []time.Duration
	for _, g := range gangs {
		for _, run := range runs {
			if run.Gang != g.Name || run.Free.IsZero() {
				continue
			}
			arrival = append(arrival, run.First.Sub(begin)-g.Submit)
			if extra := run.Free.Sub(run.First) - g.RunTime; g.Members == 1 {
				single = append(single, extra)
			} else {
				several = append(several, extra)
			}
		}
	}
	return Startup{Single: median(single), Gang: median(several), Arrival: median(arrival)}
}

func median(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// Tick is the real time that a second of a scenario stands for.
const Tick = 250 * time.Millisecond

// ticks converts real time to that of scenarios, rounded to whole ticks.
func ticks(d time.Duration) time.Duration {
	return time.Duration(d.Round(Tick).Milliseconds()/Tick.Milliseconds()) * time.Second
}

// unticked converts the time of scenarios to real time.
func unticked(d time.Duration) time.Duration { return time.Duration(int64(d/time.Second)) * Tick }

// unit is a factor of 1 in thousandths.
const unit = 1000

// Factor returns the factor of the simulator's startup costs (simulate --startup), in thousandths, with which a gang takes as long to start as was
// measured. published is the time of the factor 1, in seconds of a scenario.
func (s Startup) Factor(published int64) int64 {
	return int64(math.Round(unit * s.Gang.Seconds() / Tick.Seconds() / float64(published)))
}
