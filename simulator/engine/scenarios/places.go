package scenarios

import (
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// places returns cases about the nodes on which jobs start.
func places() []Case {
	return []Case{
		shows(
			"segments",
			"Segments of consecutive ranks share a rack each, and wait while only parts of racks are free.",
			machines(3, 3), trace.Trace{Jobs: []trace.Job{
				within(gang("one", 1, 0, 3*time.Hour), levelRack),
				segmented(gang("whole-racks", 6, time.Minute, time.Hour), 3, levelRack),
				segmented(gang("pairs", 6, 2*time.Minute, time.Hour), 2, levelRack),
			}}),
		shows(
			"clique",
			"A gang that has to be in one NVLink clique waits for one, though enough machines are free in two.",
			machines(2, 4), trace.Trace{Jobs: []trace.Job{
				within(gang("left", 2, 0, time.Hour), levelClique),
				within(gang("right", 3, 0, 2*time.Hour), levelClique),
				within(gang("together", 4, time.Minute, time.Hour), levelClique),
			}}),
		shows(
			"elastic",
			"A gang of four that needs two of its pods starts beside one that has left it only three machines.",
			machines(1, 4), trace.Trace{Jobs: []trace.Job{
				gang("holds", 1, 0, 2*time.Hour), atLeast(gang("elastic", 4, time.Minute, time.Hour), 2),
			}}),
	}
}
