package scenarios

import (
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// losses are cases about nodes that are lost.
func losses() []Case {
	return []Case{
		shows(
			"failure",
			"A machine fails below a gang, which runs again from its beginning on the machines that are left.",
			machines(1, 3), trace.Trace{
				Jobs: []trace.Job{gang("pair", 2, 0, time.Hour), gang("next", 2, time.Minute, time.Hour)},
				Events: []trace.Event{
					happens(trace.Fail, 30*time.Minute, node(0, 0)), happens(trace.Fail, 31*time.Minute, node(0, 1)),
					happens(trace.Return, 40*time.Minute, node(0, 0)), happens(trace.Return, 5*time.Hour, node(0, 1)),
				},
			}),
		shows(
			"drain",
			"Nothing starts on machines that are drained; a gang that needs their rack starts when they return.",
			machines(1, 4), trace.Trace{
				Jobs: []trace.Job{gang("small", 1, time.Minute, time.Hour), gang("rack", 4, 2*time.Hour, time.Hour)},
				Events: []trace.Event{
					happens(trace.Drain, 0, node(0, 0), node(0, 1)),
					happens(trace.Return, 6*time.Hour, node(0, 0), node(0, 1)),
				},
			}),
	}
}
