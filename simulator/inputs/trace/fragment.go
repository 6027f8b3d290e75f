package trace

import (
	"fmt"
	"time"
)

// Fragments describes the cluster of FragmentThenGang, and the gangs that arrive when it is fragmented. All are at
// least 1, GPUs at most MostGPUs.
type Fragments struct {
	// Nodes is the number of nodes of the cluster, GPUs that of each of them.
	Nodes, GPUs int
	// Gangs is the number of gangs, Pods the number of pods of each, which take a whole node.
	Gangs, Pods int
}

// The end of the small jobs of FragmentThenGang, and the run time of its gangs.
const (
	fragmentsAfter = time.Hour
	wholeAfter     = 5 * time.Hour
	gangRuns       = time.Hour
)

// FragmentThenGang returns the worst case of large gangs: jobs of one GPU fill the cluster at once, half of them, drawn
// from the seed, end after an hour, and then the gangs arrive. Half of all GPUs are free and hardly any node is: the
// gangs start when the other half ends, after five hours, unless a scheduler has left nodes whole or makes them so.
func FragmentThenGang(f Fragments, seed uint64) Trace {
	t := Trace{
		Name: "fragment-then-gang",
		Source: fmt.Sprintf("made for %d nodes of %d GPUs: %d jobs of one GPU, then %d gangs of %d nodes",
			f.Nodes, f.GPUs, f.Nodes*f.GPUs, f.Gangs, f.Pods),
		Synthetic: true,
	}
	small := f.Nodes * f.GPUs
	for i, drawn := range chance(seed, streamFragments).Perm(small) {
		j := Job{ID: fmt.Sprintf("small-%06d", i+1), Tenant: "small", Duration: wholeAfter, Podsets: gang(1)}
		if drawn < small/2 {
			j.Duration = fragmentsAfter
		}
		t.Jobs = append(t.Jobs, j)
	}
	for i := range f.Gangs {
		t.Jobs = append(t.Jobs, Job{
			ID: fmt.Sprintf("gang-%06d", i+1), Tenant: "large", Submit: fragmentsAfter, Duration: gangRuns,
			Podsets: []Podset{wholeNodes(f.Pods, f.GPUs)},
		})
	}
	return t.sorted()
}
