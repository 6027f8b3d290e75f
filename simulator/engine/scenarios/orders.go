package scenarios

import (
	"fmt"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// orders returns cases about the order in which jobs start.
func orders() []Case {
	var burst, singles []trace.Job
	for i := range 50 {
		burst = append(burst, gang(fmt.Sprintf("burst-%02d", i), 1+i%8, 0, time.Duration(10+i%7)*time.Minute))
	}
	for i := range 40 {
		single := pods(gang(fmt.Sprintf("single-%02d", i), 1, time.Duration(i)*5*time.Minute, 30*time.Minute), 1)
		singles = append(singles, single)
	}
	return []Case{
		shows(
			"serial",
			"Gangs that need the whole fleet run one after the other, each from the instant at which the one before ends.",
			machines(1, 4),
			trace.Trace{Jobs: []trace.Job{
				gang("a", 4, 0, time.Hour), gang("b", 4, time.Minute, time.Hour),
				gang("c", 4, 2*time.Minute, time.Hour),
			}},
		),
		shows(
			"burst",
			"Fifty gangs of one to eight machines come at one instant, and all of them run in the end.",
			machines(4, 4), trace.Trace{Jobs: burst}),
		shows(
			"priority",
			"A gang of a higher priority ends one of a lower that may be ended, and not the one beside it that may not.",
			machines(2, 2),
			trace.Trace{Jobs: []trace.Job{
				prioritized(gang("low", 2, 0, time.Hour), 0), prioritized(gang("kept", 2, 0, time.Hour), 1),
				prioritized(gang("urgent", 2, 10*time.Minute, 20*time.Minute), 5),
			}},
		),
		shows(
			"backfill",
			"While a place is kept for the first of the queue, who promises to end before it is needed passes.",
			machines(1, 4), trace.Trace{Jobs: promised(
				gang("holds", 2, 0, time.Hour), gang("first", 4, time.Minute, time.Hour),
				gang("short", 2, 2*time.Minute, 30*time.Minute),
			)}),
		shows(
			"reservation",
			"Who would delay the first of the queue does not pass, though there is room now.",
			machines(1, 4), trace.Trace{Jobs: promised(
				gang("holds", 2, 0, time.Hour), gang("first", 4, time.Minute, time.Hour),
				gang("long", 2, 2*time.Minute, 2*time.Hour),
			)}),
		shows(
			"singles",
			"Single pods that come all the time do not starve a gang that needs the whole fleet.",
			machines(1, 2), trace.Trace{
				Jobs: promised(append(singles, gang("whole", 2, 31*time.Minute, time.Hour))...),
			}),
		shows(
			"ties",
			"Equal gangs that come at one instant start in the order of their names, on nodes that are the same each time.",
			machines(2, 2),
			trace.Trace{Jobs: []trace.Job{
				gang("d", 1, 0, time.Hour), gang("b", 1, 0, time.Hour),
				gang("a", 1, 0, time.Hour), gang("c", 1, 0, time.Hour), gang("e", 1, 0, time.Hour),
			}},
		),
	}
}
