package measure

import "fmt"

// ArrivalDefinitions are those of the numbers by which runs of openb are compared: pods that share GPUs arrive there
// and never leave, so nothing waits and no time passes.
func ArrivalDefinitions() []Definition {
	var all []Definition
	for _, mark := range [...]string{"80", "90", "95", "100", "110", "130"} {
		all = append(all, Definition{
			"allocation_at_arrival." + mark,
			fmt.Sprintf("allocated at %s %% asked for", mark),
			"%",
			Higher,
			"GPUs allocated in per cent of all, as the mean over the moments at which pods had asked for that many per cent, rounded, " +
				"whether they were placed or not.",
			func(c *Scorecard) float64 { return c.AllocationAtArrival[mark] },
		})
	}
	for _, name := range [...]string{"pods.placed", "throughput.pods_per_s", "throughput.wall_s"} {
		if d, ok := DefinitionOf(name); ok {
			all = append(all, d)
		}
	}
	return all
}
