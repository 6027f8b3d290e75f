package measure

// CostDefinitions returns those of the numbers that a scorecard has where placements, starts or failures cost time
// (Scorecard.Costs). For a scorecard without such they are free of costs: a slowdown of 1 and no hours.
func CostDefinitions() []Definition {
	const window = " In the window; these parts and the useful GPU-hours are all that accelerators in use had."
	of := func(value func(*Costs) float64) func(*Scorecard) float64 {
		return func(c *Scorecard) float64 {
			if c.Costs == nil {
				return value(&Costs{MeanSlowdown: 1})
			}
			return value(c.Costs)
		}
	}
	return []Definition{
		{
			"costs.mean_slowdown",
			"mean slowdown by placement",
			"1",
			Lower,
			"Time of training by the nominal time of the same work, which is that on the best possible placement. Mean in which a job counts as " +
				"its accelerators times its time.",
			of(func(c *Costs) float64 { return c.MeanSlowdown }),
		},
		{
			"costs.slowdown_gpu_hours", "GPU-hours lost to slowdown", "GPU-h", Lower,
			"What training took longer than its nominal time." + window,
			of(func(c *Costs) float64 { return c.SlowdownGPUHours }),
		},
		{
			"costs.startup_gpu_hours", "GPU-hours of starts and restarts", "GPU-h", Lower,
			"From placement to the first step: binding, assembly, and reloading of checkpoints." + window,
			of(func(c *Costs) float64 { return c.StartupGPUHours }),
		},
		{
			"costs.preempted_gpu_hours", "GPU-hours redone after preemption", "GPU-h", Lower,
			"Nominal work since the last checkpoint of runs that were ended for another gang." + window,
			of(func(c *Costs) float64 { return c.PreemptedGPUHours }),
		},
		{
			"costs.disrupted_gpu_hours", "GPU-hours redone after failures", "GPU-h", Lower,
			"Nominal work since the last checkpoint of runs that lost a node." + window,
			of(func(c *Costs) float64 { return c.DisruptedGPUHours }),
		},
		{
			"costs.paused_gpu_hours", "GPU-hours held while members are replaced", "GPU-h", Lower,
			"What gangs held on the nodes that they kept while lost members waited for others." + window,
			of(func(c *Costs) float64 { return c.PausedGPUHours }),
		},
		{
			"costs.restarts", "restarts", "", Lower, "Starts that followed an earlier one of their job.",
			of(func(c *Costs) float64 { return float64(c.Restarts) }),
		},
		{
			"costs.failed_nodes", "failures of nodes", "", Neither, "Nodes that failed, each as often as it did.",
			of(func(c *Costs) float64 { return float64(c.FailedNodes) }),
		},
		{
			"violations.unfinished", "runs ended before their work", "", Lower,
			"Runs that ended before their work was done, by the reckoning of the ledger.",
			func(c *Scorecard) float64 { return float64(c.Violations.Unfinished) },
		},
	}
}
