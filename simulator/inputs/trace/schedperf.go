package trace

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
)

// Burst is a number of equal gangs that arrive at once.
type Burst struct {
	// Gangs is the number of gangs, Pods the number of pods of each: at least 1, and at most MostPods together.
	Gangs, Pods int
	// Required is the level with one domain that has to hold a gang; empty is no wish.
	Required string
}

// SchedulerPerf is a workload of scheduler_perf's suites of gangs: equal gangs arrive at once at an empty cluster and
// run for an hour. Pods request the same as there (100m, 100Mi), and one accelerator, because accelerators are counted
// here; the fleet k8s-5000 is made so that as many pods fit on a node as there.
//
// Shapes and requests are those of k8s.io/kubernetes, test/integration/scheduler_perf/podgroup/{gangscheduling,tas} of
// v1.37.1 (Apache License 2.0): 1000, 2000 or 3000 gangs of 3, and within a rack of 100 nodes 750, 1500 or 2250 gangs
// of 4; in both 3, 6 or 9 gangs of 1000.
func SchedulerPerf(b Burst) Trace {
	suite := "gang"
	if b.Required != "" {
		suite = "tas"
	}
	t := Trace{
		Name: fmt.Sprintf("k8s-%s:%dx%d", suite, b.Gangs, b.Pods),
		Source: fmt.Sprintf(
			"shape of Kubernetes' scheduler_perf (podgroup): %d gangs of %d pods; Apache-2.0",
			b.Gangs,
			b.Pods,
		),
		Synthetic: true,
	}
	for i := range b.Gangs {
		t.Jobs = append(t.Jobs, Job{
			ID: fmt.Sprintf("gang-%06d", i+1), Duration: time.Hour, Required: b.Required,
			Podsets: []Podset{{Count: b.Pods, GPUs: 1, CPU: 100, Memory: 100 << 20}},
		})
	}
	return t
}

// schedulerPerf parses the part after the name of a suite, GANGSxPODS.
func schedulerPerf(name, shape, usual, required string) (Trace, error) {
	if shape == "" {
		shape = usual
	}
	gangs, pods, ok := strings.Cut(shape, "x")
	g, wrong := strconv.Atoi(gangs)
	p, wrongToo := strconv.Atoi(pods)
	if !ok || wrong != nil || wrongToo != nil || g < 1 || p < 1 || g > MostPods/p {
		return Trace{}, &badinput.Error{
			What: fmt.Sprintf("there is no trace %q", name),
			Mend: fmt.Sprintf(
				"write how many gangs of how many pods, such as %s, of at most %d pods in all",
				usual,
				MostPods,
			),
		}
	}
	return SchedulerPerf(Burst{Gangs: g, Pods: p, Required: required}), nil
}
