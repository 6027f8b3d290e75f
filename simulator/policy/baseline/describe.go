package baseline

import "maps"

// The disciplines: which jobs may pass the first of the queue.
const (
	// Greedy starts every job that fits.
	Greedy = "greedy"
	// Strict lets no job pass.
	Strict = "strict"
	// Window is Slurm's sched/backfill: every job that waits, to the limits of bf_max_job_test and bf_window, has a
	// planned start, and others pass where they delay none of them.
	Window = "window"
	// Evicting is Greedy, and jobs of lower priority are evicted as preemption.withinClusterQueue: LowerPriority of a
	// ClusterQueue does.
	Evicting = "evicting"
)

// Description describes a policy in a report.
type Description struct {
	// Source is the model of the policy, with the release or the document.
	Source string
	// Discipline is the one that the original has in the field: Greedy, Strict, Window or Evicting.
	Discipline string
	// TieRule is its choice between equally good places.
	TieRule string
	// Asks describes the requests of its users, and Unasked the wishes of a gang (topology.Gang) that they cannot
	// express: those are ignored, and show up as broken rules or as worse placements.
	Asks, Unasked string
}

// Describe returns the description of a policy. A name that is not one of Names is bad input.
func Describe(name string) (Description, error) {
	d, known := descriptions()[name]
	if !known {
		return Description{}, unknown(name)
	}
	return d, nil
}

func descriptions() map[string]Description {
	all := map[string]Description{
		Random: {
			Source:     "each pod on a feasible node, all equally likely",
			Discipline: Greedy,
			TieRule:    "drawn from the seed and the gang's name",
		},
		FirstFit: {
			Source:     "each pod on the first feasible node by name",
			Discipline: Greedy,
			TieRule:    "the first node by name",
		},
		LeastAllocated: scoredBy("LeastAllocated"),
		MostAllocated:  scoredBy("MostAllocated"),
	}
	for name, d := range all {
		d.Asks, d.Unasked = "nothing", "required and preferred levels, segments"
		all[name] = d
	}
	maps.Copy(all, ofKueue())
	maps.Copy(all, ofSlurm())
	return all
}

func scoredBy(strategy string) Description {
	return Description{
		Source: "kube-scheduler 1.37 NodeResourcesFit, scoringStrategy " + strategy + " over cpu, memory" +
			" and accelerators of equal weight, a pod at a time",
		Discipline: Greedy,
		TieRule:    "the first node in label-path order",
	}
}

func ofKueue() map[string]Description {
	plain := Description{
		Source: "Kueue 0.19 topology-aware scheduling: BestFit for required and preferred levels," +
			" LeastFreeCapacity without (gate TASProfileMixed); queues are BestEffortFIFO",
		Discipline: Greedy,
		TieRule:    "the first domain by label values",
		Asks: "podset-required-topology, podset-preferred-topology (not both: kueue#9361, required stands), " +
			"podset-slice-required-topology with podset-slice-size",
		Unasked: "a preferred level beside a required one; segments that do not divide the gang are refused",
	}
	preempting := plain
	preempting.Source += "; preemption.withinClusterQueue: LowerPriority"
	preempting.Discipline = Evicting
	return map[string]Description{KueueBestFit: plain, KueuePreempting: preempting}
}

func ofSlurm() map[string]Description {
	const scheduler = "; sched/backfill with Slurm's default numbers (bf_max_job_test=500, bf_window=1440 min, " +
		"bf_resolution=60 s, bf_interval=30 s), jobs without a deadline have no time limit"
	return map[string]Description{
		SlurmBlock: {
			Source:     "Slurm topology/block, by its documentation and eval_nodes_block.c (SchedMD/slurm 0032c98)" + scheduler,
			Discipline: Window,
			TieRule:    "the last block in label-path order, as the plugin does",
			Asks: "--segment; without it a job is in one block of the smallest size that could hold it, which is a hard rule" +
				" for all jobs",
			Unasked: "the level of a required or preferred domain, or of segments: it is the block's",
		},
		SlurmTree: {
			Source:     "Slurm topology/tree, by its documentation (topology.html)" + scheduler,
			Discipline: Window,
			TieRule:    "the first switch in label-path order",
			Asks: "--switches=1 for a required level that is a leaf switch's or inside one, with max_switch_wait raised so that" +
				" the job waits as long as it takes; every job is placed under the lowest switch with room",
			Unasked: "a required level above leaf switches, preferred levels (what all jobs get), segments",
		},
		SlurmFlat: {
			Source:     "Slurm topology/flat, by its documentation (topology.html)" + scheduler,
			Discipline: Window,
			TieRule:    "the last run of nodes in label-path order",
			Asks:       "nothing",
			Unasked:    "required and preferred levels, segments",
		},
	}
}
