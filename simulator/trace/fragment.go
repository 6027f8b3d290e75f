package trace

import (
	"fmt"
	"time"
)

// Fragments is for what cluster FragmentThenGang is made, and what comes when it is fragmented. All are at least 1, GPUs at
// most MostGPUs.
type Fragments struct {
	// Nodes is how many nodes the cluster has, GPUs how many each of them has.
	Nodes, GPUs int
	// Gangs is how many gangs come, Pods how many pods each has, which take a whole node.
	Gangs, Pods int
}

// When small jobs of FragmentThenGang end, and how long its gangs run.
const (
	fragmentsAfter = time.Hour
	wholeAfter     = 5 * time.Hour
	gangRuns       = time.Hour
)

// FragmentThenGang is the worst that can happen to large gangs: jobs of one GPU fill the cluster at once, half of them, by
// chance, end after an hour, and then the gangs come. Half of all GPUs are free and hardly any node is: the gangs start when
// the other half ends, after five hours, unless somebody has kept nodes whole or makes them so.
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
