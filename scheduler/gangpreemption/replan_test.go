//go:build !race

package gangpreemption_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// A gang preempts units on parts of two cliques and waits for them to end. Before they do, all of a third clique
// becomes free: the gang starts there, rank by rank, and its nominated nodes are free for others.
func TestPreemption_TakesBetterRoomFreedMeanwhile(t *testing.T) {
	t.Parallel()
	x := []string{
		schedulertest.NodeName(1, 0),
		schedulertest.NodeName(1, 1),
		schedulertest.NodeName(2, 0),
		schedulertest.NodeName(2, 1),
	}
	important, stays := schedulertest.BoundGang(
		"important",
		1_002_000,
		schedulertest.NodeName(
			1,
			2,
		),
		schedulertest.NodeName(1, 3),
		schedulertest.NodeName(2, 2),
		schedulertest.NodeName(2, 3),
	)
	better, leaves := schedulertest.BoundGang("better", 1_002_000, schedulertest.CliqueNodes(0, 4)...)
	low, victims := schedulertest.BoundGang("low", 0, x...)
	c := schedulertest.NewUnstartedCluster(
		t,
		schedulertest.Cliques(3, 4),
		important,
		better,
		low,
		stays,
		leaves,
		victims,
	)
	c.KeepTerminating()
	c.Start(t)

	high, members := schedulertest.Gang("high", 4, "")
	schedulertest.SetPriority(high, members, 1_001_000)
	c.Create(t, high, members)
	if got := c.WaitNominated(t, members); !slices.Equal(got, x) {
		t.Fatalf("the gang is nominated to %v, want its victims' %v", got, x)
	}
	c.RemovePods(t, leaves)
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(0, 4)) {
		t.Errorf("members by rank are on %v, want clique 0 in order", got)
	}

	c.RemovePods(t, victims)
	next, late := schedulertest.Gang("next", 4, "")
	c.Create(t, next, late)
	got := c.WaitBound(t, late)
	slices.Sort(got)
	if !slices.Equal(got, x) {
		t.Errorf("the next gang is on %v, want %v, to which nobody is nominated any more", got, x)
	}
}

// The victims on the preferred clique would have to leave without result: a service there that stays bears no member
// beside it.
func TestPreemption_AvoidsRefusedClique(t *testing.T) {
	t.Parallel()
	noisy := schedulertest.ServicePod("noisy", schedulertest.NodeName(0, 2), map[string]string{"app": "noisy"})
	priority := int32(1_002_000)
	noisy.Spec.Priority = &priority
	first, spared := schedulertest.BoundGang("first", 0, schedulertest.CliqueNodes(0, 4)...)
	second, victims := schedulertest.BoundGang("second", 0, schedulertest.CliqueNodes(1, 4)...)
	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 4), first, second, spared, victims, noisy)

	high, members := schedulertest.GangWith("high", 4, "clique", schedulertest.AvoidApp("noisy"))
	schedulertest.SetPriority(high, members, 1_001_000)
	c.Create(t, high, members)
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(1, 4)) {
		t.Errorf("members by rank are on %v, want clique 1 in order", got)
	}
	for _, p := range spared {
		if _, err := c.CoreV1().
			Pods(schedulertest.Namespace).
			Get(t.Context(), p.Name, metav1.GetOptions{}); err != nil {
			t.Errorf("a pod was preempted without result: %v", err)
		}
	}
}

// Whatever would go, services that stay bear no member beside them in either clique. The gang is tried again at the
// pace of the queue's timer (after 1, 2 and 4 s), not at that of a gang whose victims are going.
func TestPreemption_UnsuccessfulAttemptsBackOff(t *testing.T) {
	objects := schedulertest.Objects(schedulertest.Cliques(2, 4)...)
	for i := range 2 {
		noisy := schedulertest.ServicePod(
			fmt.Sprint("noisy-", i),
			schedulertest.NodeName(i, 2),
			map[string]string{"app": "noisy"},
		)
		priority := int32(1_002_000)
		noisy.Spec.Priority = &priority
		group, members := schedulertest.BoundGang(fmt.Sprint("low-", i), 0, schedulertest.CliqueNodes(i, 4)...)
		objects = slices.Concat(
			objects,
			schedulertest.Objects(noisy),
			schedulertest.Objects(group),
			schedulertest.Objects(members...),
		)
	}
	c := schedulertest.NewCluster(t, objects)
	high, members := schedulertest.GangWith("high", 4, "clique", schedulertest.AvoidApp("noisy"))
	schedulertest.SetPriority(high, members, 1_001_000)
	before := schedulertest.Metric(t, "lockstep_scheduler_decision_duration_seconds", "")
	c.Create(t, high, members)
	c.WaitRejected(t, "high")
	time.Sleep(8 * time.Second)
	// Five attempts at most, each with a dry run.
	if n := schedulertest.Metric(t, "lockstep_scheduler_decision_duration_seconds", "") - before; n > 10 {
		t.Errorf("%v decisions in 8 s", n)
	}
	c.ExpectUnbound(t, members)
}
