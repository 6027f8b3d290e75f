package measure

func ofSpace() []Definition {
	const (
		use      = "Accelerators in use by those on nodes that are open and there. "
		fragment = "The part of the free accelerators that no gang of the trace's mix can use: each domain is filled with gangs of one " +
			"size, what is left over is counted, and the sizes (at most 64) are averaged, each weighing the accelerators that its gangs ask for. A " +
			"gang's domain is that of its required level, or else of the innermost that could hold it if it were empty. "
		largest = "Accelerators on wholly free nodes of that domain of the outermost level which has most of them. "
	)
	return []Definition{
		{
			"goodput.mean",
			"goodput",
			"1",
			Higher,
			"Accelerators in use on nodes that are open and there, less those whose work was lost " +
				"because the job was preempted or disrupted later, divided by all on such nodes. Mean over the time of the window, which is the same for all schedulers.",
			func(c *Scorecard) float64 { return c.Goodput.Mean },
		},
		{
			"utilisation.mean", "mean allocation", "1", Higher, use + "Mean over the time of the window.",
			func(c *Scorecard) float64 { return c.Utilization.Mean },
		},
		{
			"utilisation.busy_mean", "mean allocation while jobs wait", "1", Higher,
			use + "Mean over that time of the window in which a gang waits.",
			func(c *Scorecard) float64 { return c.Utilization.BusyMean },
		},
		{
			"utilisation.peak", "peak allocation", "1", Neither, use + "The most in the window.",
			func(c *Scorecard) float64 { return c.Utilization.Peak },
		},
		{
			"fragmentation.mean", "mean fragmentation", "1", Lower, fragment + "Mean over the time of the window.",
			func(c *Scorecard) float64 { return c.Fragmentation.Mean },
		},
		{
			"fragmentation.end", "fragmentation at the end", "1", Lower, fragment + "At the end of the window.",
			func(c *Scorecard) float64 { return c.Fragmentation.End },
		},
		{
			"largest_placeable.mean",
			"mean largest placeable gang",
			"GPUs",
			Higher,
			largest + "Mean over the time of the window.",
			func(c *Scorecard) float64 { return c.Largest.Mean },
		},
		{
			"largest_placeable.min",
			"smallest largest placeable gang",
			"GPUs",
			Higher,
			largest + "The least in the window.",
			func(c *Scorecard) float64 { return c.Largest.Min },
		},
	}
}

func ofRules() []Definition {
	return []Definition{
		{
			"preemption.gangs", "preemptions", "", Lower, "Runs that were ended for another gang.",
			func(c *Scorecard) float64 { return float64(c.Preemption.Gangs) },
		},
		{
			"preemption.gpu_hours",
			"GPU-hours lost to preemption",
			"GPU-h",
			Lower,
			"Accelerators times run time until then, of runs that were ended for another gang: traces know no checkpoints.",
			func(c *Scorecard) float64 { return c.Preemption.GPUHours },
		},
		{
			"preemption.disrupted",
			"runs lost with their nodes",
			"",
			Lower,
			"Runs that ended because a node failed or was drained.",
			func(c *Scorecard) float64 { return float64(c.Preemption.Disrupted) },
		},
		{
			"preemption.disrupted_gpu_hours", "GPU-hours lost with nodes", "GPU-h", Lower,
			"Accelerators times run time until then, of runs that ended because a node failed or was drained.",
			func(c *Scorecard) float64 { return c.Preemption.DisruptedGPUHours },
		},
		{
			"violations.partial_gangs",
			"partial gangs",
			"",
			Lower,
			"Starts with fewer members than have to start together.",
			func(c *Scorecard) float64 { return float64(c.Violations.PartialGangs) },
		},
		{
			"violations.required_level", "required levels broken", "", Lower,
			"Starts outside one domain of the required level, or with a segment outside one of its level.",
			func(c *Scorecard) float64 { return float64(c.Violations.RequiredLevel) },
		},
		{
			"violations.nvlink",
			"required NVLink domains broken",
			"",
			Lower,
			"Those of them that had to be in one NVLink domain.",
			func(c *Scorecard) float64 { return float64(c.Violations.NVLink) },
		},
		{
			"violations.dra", "devices given twice", "", Lower, "Starts that take more devices than a node has left.",
			func(c *Scorecard) float64 { return float64(c.Violations.DRA) },
		},
		{
			"violations.double_booking",
			"capacity given twice",
			"",
			Lower,
			"Starts that take more of anything else than a node has left, or anything on a node that is closed or gone.",
			func(c *Scorecard) float64 { return float64(c.Violations.DoubleBooking) },
		},
	}
}

func ofSpeed() []Definition {
	const decision = "Wall time of one question to the scheduler, whatever the answer. "
	return []Definition{
		{
			"decision_ms.p50", "median decision", "ms", Lower, decision + "Half of them took no longer.",
			func(c *Scorecard) float64 { return c.DecisionMS.P50 },
		},
		{
			"decision_ms.p99",
			"99th percentile of decisions",
			"ms",
			Lower,
			decision + "99 per cent of them took no longer.",
			func(c *Scorecard) float64 { return c.DecisionMS.P99 },
		},
		{
			"decision_ms.max", "longest decision", "ms", Lower, decision + "The longest of them.",
			func(c *Scorecard) float64 { return c.DecisionMS.Max },
		},
		{
			"throughput.gangs_per_s",
			"gangs started per second",
			"/s",
			Higher,
			"Starts by the wall time of the run, harness included.",
			func(c *Scorecard) float64 { return c.Throughput.GangsPerSecond },
		},
		{
			"throughput.pods_per_s",
			"pods started per second",
			"/s",
			Higher,
			"Members started by the wall time of the run.",
			func(c *Scorecard) float64 { return c.Throughput.PodsPerSecond },
		},
		{
			"throughput.wall_s", "wall time", "s", Lower, "How long the run took, harness included.",
			func(c *Scorecard) float64 { return c.Throughput.WallSeconds },
		},
	}
}
