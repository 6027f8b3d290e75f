package measure

import "slices"

// Definition describes a number of a scorecard.
type Definition struct {
	// Name is the path of the number in the scorecard's JSON, the names of nested fields joined by dots.
	Name string `json:"name"`
	// Title is for people, Unit its unit: empty for a count, "1" for a fraction or a quotient.
	Title string `json:"title"`
	Unit  string `json:"unit"`
	// Better is the better of two values.
	Better Direction `json:"better"`
	// Formula describes its computation, in a sentence or two.
	Formula string `json:"formula"`

	value func(*Scorecard) float64
}

// Direction is the better of two numbers.
type Direction string

// The directions.
const (
	Lower   Direction = "lower"
	Higher  Direction = "higher"
	Neither Direction = "neither"
)

// Of is the number in a scorecard.
func (d Definition) Of(card Scorecard) float64 { return d.value(&card) }

// Definitions are those of all numbers by which runs are compared, in the order in which people read them.
func Definitions() []Definition {
	return slices.Concat(ofGangs(), ofWaits(), ofCourse(), ofQuality(), ofSpace(), ofRules(), ofSpeed())
}

// DefinitionOf is the definition of a name.
func DefinitionOf(name string) (Definition, bool) {
	all := slices.Concat(Definitions(), CostDefinitions())
	at := slices.IndexFunc(all, func(d Definition) bool { return d.Name == name })
	if at < 0 {
		return Definition{}, false
	}
	return all[at], true
}

func ofGangs() []Definition {
	return []Definition{
		{
			"gangs.submitted", "gangs that came", "", Neither, "Jobs that were submitted until the end of the run.",
			func(c *Scorecard) float64 { return float64(c.Gangs.Submitted) },
		},
		{
			"gangs.placed", "gangs that started", "", Higher, "Jobs that started at least once.",
			func(c *Scorecard) float64 { return float64(c.Gangs.Placed) },
		},
		{
			"gangs.finished", "gangs that ended", "", Higher, "Jobs that ran to their end.",
			func(c *Scorecard) float64 { return float64(c.Gangs.Finished) },
		},
		{
			"gangs.pending", "gangs left waiting", "", Lower, "Jobs that wait at the end of the run.",
			func(c *Scorecard) float64 { return float64(c.Gangs.Pending) },
		},
		{
			"pods.placed", "pods started", "", Neither, "Members that were placed, those of second starts too.",
			func(c *Scorecard) float64 { return float64(c.Pods.Placed) },
		},
	}
}

func ofWaits() []Definition {
	const formula = "The wait of a job is all its waiting from submission on, what follows a preemption too; one that still waits at " +
		"the end counts with its wait until then, so the true figure is larger. What a snapshot's jobs had waited before is not in it. "
	return []Definition{
		{
			"wait_seconds.mean", "mean wait", "s", Lower, formula + "Mean over the jobs of the window.",
			func(c *Scorecard) float64 { return c.Wait.Mean },
		},
		{
			"wait_seconds.p50", "median wait", "s", Lower, formula + "Half of the jobs wait no longer.",
			func(c *Scorecard) float64 { return c.Wait.P50 },
		},
		{
			"wait_seconds.p95",
			"95th percentile of waits",
			"s",
			Lower,
			formula + "95 per cent of the jobs wait no longer.",
			func(c *Scorecard) float64 { return c.Wait.P95 },
		},
		{
			"wait_seconds.p99",
			"99th percentile of waits",
			"s",
			Lower,
			formula + "99 per cent of the jobs wait no longer.",
			func(c *Scorecard) float64 { return c.Wait.P99 },
		},
		{
			"wait_seconds.max", "longest wait", "s", Lower, formula + "The longest of them.",
			func(c *Scorecard) float64 { return c.Wait.Max },
		},
		{
			"by_gpu_hours.wait_seconds_mean", "mean wait by GPU-hours", "s", Lower,
			formula + "Mean in which a job counts as its accelerators times its run time.",
			func(c *Scorecard) float64 { return c.ByGPUHours.Wait },
		},
	}
}

func ofCourse() []Definition {
	const (
		jct      = "End less submission, of jobs that ended. "
		slowdown = "max(1, t / max(d, 60 s)), where t is end less submission, of a job that has not ended its wait until now and its " +
			"run time d. "
	)
	return []Definition{
		{
			"jct_seconds.mean", "mean completion time", "s", Lower, jct + "Mean over the jobs of the window.",
			func(c *Scorecard) float64 { return c.JCT.Mean },
		},
		{
			"jct_seconds.p50", "median completion time", "s", Lower, jct + "Half of them took no longer.",
			func(c *Scorecard) float64 { return c.JCT.P50 },
		},
		{
			"jct_seconds.p95",
			"95th percentile of completion times",
			"s",
			Lower,
			jct + "95 per cent of them took no longer.",
			func(c *Scorecard) float64 { return c.JCT.P95 },
		},
		{
			"by_gpu_hours.jct_seconds_mean", "mean completion time by GPU-hours", "s", Lower,
			jct + "Mean in which a job counts as its accelerators times its run time.",
			func(c *Scorecard) float64 { return c.ByGPUHours.JCT },
		},
		{
			"makespan_seconds", "makespan", "s", Lower, "The last end less the first submission, of the whole run.",
			func(c *Scorecard) float64 { return c.Makespan },
		},
		{
			"bounded_slowdown.mean",
			"mean bounded slowdown",
			"1",
			Lower,
			slowdown + "Mean over the jobs of the window.",
			func(c *Scorecard) float64 { return c.BoundedSlowdown.Mean },
		},
		{
			"bounded_slowdown.geometric_mean", "geometric mean of bounded slowdowns", "1", Lower,
			slowdown + "Geometric mean, which a few short jobs do not decide.",
			func(c *Scorecard) float64 { return c.BoundedSlowdown.GeometricMean },
		},
		{
			"bounded_slowdown.p95", "95th percentile of bounded slowdowns", "1", Lower,
			slowdown + "95 per cent of the jobs are slowed down no more.",
			func(c *Scorecard) float64 { return c.BoundedSlowdown.P95 },
		},
		{
			"by_gpu_hours.bounded_slowdown_mean", "mean bounded slowdown by GPU-hours", "1", Lower,
			slowdown + "Mean in which a job counts as its accelerators times its run time.",
			func(c *Scorecard) float64 { return c.ByGPUHours.BoundedSlowdown },
		},
	}
}

func ofQuality() []Definition {
	const cost = "The cost of a placement is the sum over the levels of the topology of the level's weight times the edges between " +
		"communicating ranks that cross its boundaries; the best is the least cost that what was free at that instant allowed. " +
		"Q = best / cost, and gap = 1/Q - 1; both costs count one edge more where the best is 0. Of starts of gangs of several members. "
	return []Definition{
		{
			"quality.mean_q", "mean quality of placements", "1", Higher, cost + "Mean of Q.",
			func(c *Scorecard) float64 { return c.Quality.MeanQ },
		},
		{
			"quality.p05_q",
			"5th percentile of quality",
			"1",
			Higher,
			cost + "5 per cent of the starts have no higher Q.",
			func(c *Scorecard) float64 { return c.Quality.P05Q },
		},
		{
			"quality.mean_gap", "mean gap to the best placement", "1", Lower, cost + "Mean of the gap.",
			func(c *Scorecard) float64 { return c.Quality.MeanGap },
		},
		{
			"quality.p95_gap",
			"95th percentile of gaps",
			"1",
			Lower,
			cost + "95 per cent of the starts have no larger gap.",
			func(c *Scorecard) float64 { return c.Quality.P95Gap },
		},
		{
			"by_gpu_hours.quality_mean_q", "mean quality by GPU-hours", "1", Higher,
			cost + "Mean of Q in which a start counts as its job's accelerators times its run time.",
			func(c *Scorecard) float64 { return c.ByGPUHours.Q },
		},
		{
			"quality.split_domains",
			"gangs split for nothing",
			"",
			Lower,
			"Starts in several NVLink domains (where there are none: innermost network domains) when one had room for all members.",
			func(c *Scorecard) float64 { return float64(c.Quality.Split) },
		},
		{
			"quality.rank_inversions",
			"boundaries crossed for nothing",
			"",
			Lower,
			"Edges of rings and chains that cross a boundary, summed over all levels, less the fewest that the domains used need: " +
				"as many as domains for a ring, one less for a chain.",
			func(c *Scorecard) float64 { return float64(c.Quality.RankInversions) },
		},
	}
}
