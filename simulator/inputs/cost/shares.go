package cost

import "strings"

// Class is a class of jobs by their share of communication.
type Class struct {
	// Name is for tables.
	Name string
	// Most is the most accelerators of a job of the class; 0 for no limit.
	Most int64
	// Share is the part of an iteration that is communication on the best placement, in thousandths.
	Share int64
	// Source states in a line the origin of the share, and the part of it that is a choice.
	Source string
}

// evaluation is in the tenants and names of jobs that evaluate checkpoints: many independent inferences (Acme, NSDI
// '24, section 6.2).
const evaluation = "evaluation"

// classes returns the classes by size, the smallest first; evaluations are the last one. Only the ends of the range are
// published:
//   - Domino (arXiv:2409.15241, section 2): communication is 17 % to 43 % of an iteration of Megatron-LM's GPT-3 and Llama-2 on DGX H100
//     with 400 Gb/s InfiniBand.
//   - Meta (OCP Global Summit 2022, keynote of A. Bjorlin): 35 % of the time of training is spent in the network on average.
//   - TopoOpt (NSDI '23, section 2.2): the share grows with the number of GPUs, up to 60 % of an iteration at Meta.
//   - Philly (Jeon et al., ATC '19, table 4): ResNet-50 on two GPUs loses 15 % of its throughput in two servers instead of one.
//
// The values in between are choices: 17 % in a node, 35 % above 512 GPUs, and even steps.
func classes() []Class {
	return []Class{
		{"1 accelerator", 1, 0, "does not communicate"},
		{"2-8 accelerators", 8, 170, "Domino, the least"},
		{"9-64 accelerators", 64, 230, "a choice: a third of the way"},
		{"65-512 accelerators", 512, 290, "a choice: two thirds of the way"},
		{"more accelerators", 0, 350, "Meta's mean"},
		{"evaluations", 0, 0, "independent inferences (Acme, NSDI '24)"},
	}
}

// ClassOf returns the class of a job by its tenant, its name and its accelerators.
func ClassOf(tenant, name string, accelerators int64) Class {
	all := classes()
	last := len(all) - 1
	if strings.Contains(tenant, evaluation) || strings.HasPrefix(name, evaluation) {
		return all[last]
	}
	for _, c := range all[:last-1] {
		if accelerators <= c.Most {
			return c
		}
	}
	return all[last-1]
}
