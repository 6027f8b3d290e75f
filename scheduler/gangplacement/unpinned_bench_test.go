package gangplacement_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// BenchmarkLoosePlacement measures the cost of the looser placement for a gang whose plan holds. With a node cap there
// is none; whole-node members are placed alike with and without the cap.
func BenchmarkLoosePlacement(b *testing.B) {
	const size, gangs, rounds = 64, 8, 16
	c, _ := schedulertest.NewBenchmarkCluster(b, schedulertest.Cliques(4, 128))
	var with, without schedulertest.AttemptTimer
	run := func(round int, name string, wishes map[string]string) func() {
		return func() {
			var all []*corev1.Pod
			for i := range gangs {
				group, members := schedulertest.Gang(fmt.Sprintf("%s-%d-%d", name, round, i), size, "")
				group.Annotations = wishes
				all = append(all, c.Submit(b, group, members)...)
			}
			c.AwaitBound(b, all, time.Minute)
			c.Free(b, all, 0)
		}
	}
	round := 0
	for b.Loop() {
		for range rounds {
			round++
			measured := []struct {
				t    *schedulertest.AttemptTimer
				what func()
			}{
				{&with, run(round, "unpinned", map[string]string{topology.AnnotationRequiredTopology: "clique"})},
				{&without, run(round, "pinned", map[string]string{
					topology.AnnotationRequiredTopology: "clique", topology.AnnotationMaxPerNode: "1",
				})},
			}
			if round%2 == 0 {
				slices.Reverse(measured)
			}
			for _, m := range measured {
				time.Sleep(200 * time.Millisecond) // until the scheduler has seen the last ones deleted
				m.t.Measure(b, gangs, m.what)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(with.PerGang(), "unpinned-ms/gang")
	b.ReportMetric(without.PerGang(), "planned-ms/gang")
	b.ReportMetric(with.PerGang()/without.PerGang(), "ratio")
	b.ReportMetric(with.PerAttempt(), "unpinned-ms/attempt")
	b.ReportMetric(without.PerAttempt(), "planned-ms/attempt")
	b.ReportMetric(with.PerAttempt()/without.PerAttempt(), "attempt-ratio")
}
