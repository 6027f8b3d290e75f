//go:build !race

package waiting_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// Hundreds of pods that ask for the same wait; eight GPUs become free. The pods that start are tried, and one more, not
// all of them.
func TestWaiting_SinglePodsWakeOneByOne(t *testing.T) {
	const most = 50
	if n := attemptsOfSingles(t, 600); n > most {
		t.Errorf("%v attempts, want at most %d", n, most)
	}
}

// BenchmarkSinglePods counts the pods that are tried if eight GPUs become free for which 10,000 wait. The target
// is fifty at most (scheduler/BENCH.md).
func BenchmarkSinglePods(b *testing.B) {
	var n float64
	for b.Loop() {
		n = attemptsOfSingles(b, 10_000)
	}
	b.ReportMetric(n, "attempts")
	b.ReportMetric(0, "ns/op")
}

// attemptsOfSingles counts the attempts after eight GPUs become free for which so many equal pods wait.
func attemptsOfSingles(tb testing.TB, pods int) float64 {
	tb.Helper()
	group, members := schedulertest.Gang("full", 2, "clique")
	c := schedulertest.NewCluster(tb, schedulertest.Cliques(1, 2))
	c.Create(tb, group, members)
	c.WaitBound(tb, members)
	waiting := make([]*corev1.Pod, pods)
	for i := range waiting {
		waiting[i] = schedulertest.Pod(fmt.Sprintf("single-%05d", i), "1")
		waiting[i].Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	const attempts = "scheduler_schedule_attempts_total"
	before := schedulertest.Metric(tb, attempts, "unschedulable")
	c.Create(tb, waiting)
	schedulertest.WaitMetric(tb, attempts, "unschedulable", before+float64(pods))
	tried := schedulertest.Metric(tb, attempts, "")
	c.DeletePods(tb, members)
	waitStarted(tb, c, waiting, 8)
	time.Sleep(time.Second) // in which others would be tried
	return schedulertest.Metric(tb, attempts, "") - tried
}

// waitStarted waits until so many of the pods have a node.
func waitStarted(tb testing.TB, c *schedulertest.Cluster, pods []*corev1.Pod, want int) {
	tb.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for started := 0; started < want; time.Sleep(20 * time.Millisecond) {
		started = 0
		for _, p := range pods {
			if c.NodeOf(p.Name) != "" {
				started++
			}
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%d pods started, want %d", started, want)
		}
	}
}

// Gangs that do not fit are parked, and freed room starts the one that waits longest, then the next.
func TestWaiting_FreedRoomStartsTheOldest(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4))
	first, members := schedulertest.Gang("first", 4, "clique")
	c.Create(t, first, members)
	c.WaitBound(t, members)
	var waiting [][]*corev1.Pod
	for i := range 6 {
		g, pods := schedulertest.Gang(fmt.Sprintf("waits-%d", i), 4, "clique")
		g.Annotations[topology.AnnotationQueuedAt] = fmt.Sprintf("2026-11-21T00:00:%02dZ", 10-i)
		c.Create(t, g, pods)
		waiting = append(waiting, pods)
		c.WaitRejected(t, g.Name)
	}
	for _, next := range slices.Backward(waiting) { // the last one waits longest
		c.DeletePods(t, members)
		members = next
		if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(0, 4)) {
			t.Errorf("members by rank are on %v, want the clique", got)
		}
	}
}
