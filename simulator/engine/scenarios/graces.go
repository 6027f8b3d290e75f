package scenarios

import (
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// graces are cases about victims that need time to leave.
func graces() []Case {
	return []Case{
		shows(
			"grace",
			"Two victims of an urgent gang run on for their graces: one ends before, and the other leaves and starts again.",
			machines(1, 2),
			trace.Trace{Jobs: []trace.Job{
				graced(gang("ends", 1, 0, 12*time.Minute), 5*time.Minute),
				graced(gang("leaves", 1, 0, time.Hour), 3*time.Minute),
				prioritized(gang("urgent", 2, 10*time.Minute, 20*time.Minute), 5),
			}},
		),
	}
}
