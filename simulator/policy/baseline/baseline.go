package baseline

import (
	"fmt"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/topology"
)

// Policy chooses the nodes of a gang. It may be used by one goroutine at a time.
type Policy interface {
	// Place returns the node of each member, by the nodes' numbers in the tree, in rank order; false if the gang has no
	// room, or none that the policy finds.
	Place(l topology.Ledger, gang topology.Gang) ([]int, bool)
}

// The names of the policies.
const (
	KueueBestFit = "kueue-bestfit"
	// KueuePreempting is KueueBestFit in a ClusterQueue with preemption.withinClusterQueue: LowerPriority.
	KueuePreempting = "kueue-bestfit-preempt"
	SlurmBlock      = "slurm-block"
	SlurmTree       = "slurm-tree"
	SlurmFlat       = "slurm-flat"
	Random          = "random"
	FirstFit        = "first-fit"
	LeastAllocated  = "least-allocated"
	MostAllocated   = "most-allocated"
)

// Names returns the names that New knows.
func Names() []string {
	return []string{
		KueueBestFit,
		KueuePreempting,
		SlurmBlock,
		SlurmTree,
		SlurmFlat,
		Random,
		FirstFit,
		LeastAllocated,
		MostAllocated,
	}
}

// New returns the policy of a name. The seed is for those that draw. A name that is not one of Names is bad input.
func New(name string, seed uint64) (Policy, error) {
	switch name {
	case KueueBestFit, KueuePreempting:
		return &kueue{}, nil
	case SlurmBlock:
		return &slurm{}, nil
	case SlurmTree:
		return &slurmTree{}, nil
	case SlurmFlat:
		return &slurmFlat{}, nil
	case Random:
		return &random{seed: seed}, nil
	case FirstFit:
		return &firstFit{}, nil
	case LeastAllocated:
		return &scored{score: leastAllocated}, nil
	case MostAllocated:
		return &scored{score: mostAllocated}, nil
	}
	return nil, unknown(name)
}

func unknown(name string) error {
	return &badinput.Error{
		What: fmt.Sprintf("there is no placement called %q to compare with", name),
		Mend: fmt.Sprintf("name one of %q", slices.Sorted(slices.Values(Names()))),
	}
}
