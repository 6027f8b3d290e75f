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

// Hundreds of pods that ask for the same wait; eight GPUs come back. The pods that start are tried, and one more, not all of them.
func TestWaiting_SinglePodsWakeOneByOne(t *testing.T) {
	const pods, most = 600, 50
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 2))
	group, members := schedulertest.Gang("full", 2, "clique")
	c.Create(t, group, members)
	c.WaitBound(t, members)
	var waiting []*corev1.Pod
	for i := range pods {
		p := schedulertest.Pod(fmt.Sprintf("single-%03d", i), "1")
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		waiting = append(waiting, p)
	}
	const attempts = "scheduler_schedule_attempts_total"
	before := schedulertest.Metric(t, attempts, "unschedulable")
	c.Create(t, waiting)
	schedulertest.WaitMetric(t, attempts, "unschedulable", before+pods)
	tried := schedulertest.Metric(t, attempts, "")
	c.DeletePods(t, members)
	deadline := time.Now().Add(20 * time.Second)
	for started := 0; started < 8; {
		started = 0
		for _, p := range waiting {
			if c.NodeOf(p.Name) != "" {
				started++
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d pods started, want 8", started)
		}
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(time.Second) // in which others would be tried
	if n := schedulertest.Metric(t, attempts, "") - tried; n > most {
		t.Errorf("%v attempts, want at most %d", n, most)
	}
}

// Gangs that do not fit are parked, and what becomes free starts the one that waits longest, then the next.
func TestFreedRoomStartsThoseThatWait(t *testing.T) {
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
