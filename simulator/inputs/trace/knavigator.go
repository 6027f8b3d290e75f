package trace

import (
	"fmt"
	"time"
)

// Knavigator returns NVIDIA's gang scheduling benchmark: a burst of 53 jobs of 1 to 32 pods, which take a node of eight
// GPUs each for 30 s. In the order of their arrival they fill 32 nodes nine times over, so the optimum is known:
// nothing is ever idle, and all is done after 270 s. A scheduler that lets the small ones pass the large ones leaves
// nodes idle.
//
// Sizes, order, run time and requests are those of github.com/NVIDIA/knavigator, resources/benchmarks/gang-scheduling
// (workflows/run-test.yaml of commit 320d1ec6, templates/k8s/jobset.yml; Apache License 2.0).
func Knavigator() Trace {
	t := Trace{
		Name:      "knavigator-53",
		Source:    "sizes and order of NVIDIA Knavigator's gang-scheduling benchmark; Apache-2.0",
		Synthetic: true,
	}
	for _, equal := range []struct{ jobs, pods int }{
		{1, 32},
		{2, 16},
		{3, 10},
		{1, 2},
		{4, 8},
		{5, 6},
		{2, 1},
		{6, 5},
		{1, 2},
		{7, 4},
		{1, 2},
		{2, 1},
		{8, 4},
		{9, 3},
		{1, 5},
	} {
		for range equal.jobs {
			t.Jobs = append(t.Jobs, Job{
				ID:       fmt.Sprintf("job-%02d", len(t.Jobs)+1),
				Duration: 30 * time.Second,
				Podsets:  []Podset{{Count: equal.pods, GPUs: gpusPerNode, CPU: 100, Memory: 256_000_000}},
			})
		}
	}
	return t
}
