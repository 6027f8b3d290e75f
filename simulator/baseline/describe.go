package baseline

// The disciplines: who may pass the first of the queue.
const (
	// Greedy is that whoever fits starts.
	Greedy = "greedy"
	// Strict is that nobody passes.
	Strict = "strict"
	// Backfill is that a place is kept for the first, and others pass where they do not delay it.
	Backfill = "backfill"
)

// Description is what a report says about a policy.
type Description struct {
	// Source is what the policy is made after, with the release or the document.
	Source string
	// Discipline is the one that the original has in the field: Greedy, Strict or Backfill.
	Discipline string
	// TieRule is how it chooses between what it holds for equally good.
	TieRule string
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
	return map[string]Description{
		KueueBestFit: {
			Source: "Kueue 0.19 topology-aware scheduling: BestFit for required and preferred levels," +
				" LeastFreeCapacity without (gate TASProfileMixed); queues are BestEffortFIFO",
			Discipline: Greedy,
			TieRule:    "the first domain by label values",
		},
		SlurmBlock: {
			Source:     "Slurm topology/block, by its documentation and eval_nodes_block.c (SchedMD/slurm 0032c98); sched/backfill",
			Discipline: Backfill,
			TieRule:    "the last block in label-path order, as the plugin does",
		},
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
		LeastAllocated: {
			Source: "kube-scheduler 1.37 NodeResourcesFit, scoringStrategy LeastAllocated over cpu, memory" +
				" and accelerators of equal weight, a pod at a time",
			Discipline: Greedy,
			TieRule:    "the first node in label-path order",
		},
		MostAllocated: {
			Source: "kube-scheduler 1.37 NodeResourcesFit, scoringStrategy MostAllocated over cpu, memory" +
				" and accelerators of equal weight, a pod at a time",
			Discipline: Greedy,
			TieRule:    "the first node in label-path order",
		},
	}
}
