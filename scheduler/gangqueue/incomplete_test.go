//go:build !race

package gangqueue_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// quick is a clock whose timers are over after a hundredth of the time.
type quick struct{ clock.RealClock }

func (q quick) AfterFunc(d time.Duration, f func()) clock.Timer {
	return q.RealClock.AfterFunc(d/100, f)
}

// impatient is a cluster of one clique whose scheduler waits a hundredth of the time for what it waits for.
func impatient(t *testing.T, nodes int) *schedulertest.Cluster {
	t.Helper()
	c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(1, nodes))
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	c.StartScheduler(ctx, t, c, schedulertest.Config(t), schedulertest.Registry(quick{}))
	return c
}

// awaitVerdict waits until a PodGroup says why its gang waits, or that it does not.
func awaitVerdict(t *testing.T, c *schedulertest.Cluster, name string, want metav1.Condition) {
	t.Helper()
	var last *metav1.Condition
	for range 1000 {
		group, err := c.SchedulingV1beta1().
			PodGroups(schedulertest.Namespace).
			Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		last = apimeta.FindStatusCondition(group.Status.Conditions, explanation.Condition)
		if last != nil && last.Status == want.Status && last.Reason == want.Reason && last.Message == want.Message {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("the group says %+v, want %s %s %q", last, want.Status, want.Reason, want.Message)
}

// A launcher without a priority class, and workers with one: kube-scheduler would refuse them, and the group, which is
// a custom resource, gets no priority. It says why.
func TestGangQueue_SaysThatPrioritiesDiffer(t *testing.T) {
	t.Parallel()
	c := impatient(t, 4)
	group, members := schedulertest.Gang("mpi", 3, "clique")
	for _, worker := range members[1:] {
		worker.Spec.Priority = new(int32(10))
	}
	c.Create(t, group, members)
	awaitVerdict(t, c, "mpi", metav1.Condition{
		Status: metav1.ConditionTrue, Reason: explanation.WrongRequest,
		Message: "its members have priorities 0 and 10; let all of them have the same priority class",
	})
}

// The group of an incomplete gang reports the missing member, and its return.
func TestGangQueue_IncompleteGangSaysWhatItLacks(t *testing.T) {
	t.Parallel()
	c := impatient(t, 4)
	says := func(status metav1.ConditionStatus, reason, message string) {
		t.Helper()
		awaitVerdict(t, c, "train", metav1.Condition{Status: status, Reason: reason, Message: message})
	}
	group, members := schedulertest.Gang("train", 4, "clique")
	c.Create(t, group, members[:3])
	says(
		metav1.ConditionTrue,
		explanation.Incomplete,
		"3 of the 4 members that it needs exist; the others have to be created first",
	)
	c.Create(t, members[3:])
	c.WaitBound(t, members)
	says(metav1.ConditionFalse, explanation.Placed, "the gang has its nodes")
	c.DeletePods(t, members[2:3])
	says(metav1.ConditionTrue, explanation.Incomplete,
		"1 of the 4 members that it needs are lost, and not made again yet; 3 run and wait for them")
	again := members[2].DeepCopy()
	again.Name, again.UID = "again-2", "again-2"
	c.Create(t, again)
	c.WaitBound(t, []*corev1.Pod{again})
	says(metav1.ConditionFalse, explanation.Placed, "the gang has its nodes")

	// The kubelet of one that is being deleted does not answer.
	c.KeepTerminating()
	c.DeletePods(t, members[1:2])
	says(
		metav1.ConditionTrue,
		explanation.Incomplete,
		"1 of the 4 members that it needs are lost, and not made again yet; "+
			"3 run and wait for them; 1 are being deleted and have not ended",
	)
	c.RemovePods(t, members[1:2])
	again = members[1].DeepCopy()
	again.Name, again.UID = "again-1", "again-1"
	c.Create(t, again)
	c.WaitBound(t, []*corev1.Pod{again})
	says(metav1.ConditionFalse, explanation.Placed, "the gang has its nodes")
}

// The group of a gang that another scheduler serves is that scheduler's to explain.
func TestGangQueue_SaysNothingOfGangsOfOtherSchedulers(t *testing.T) {
	t.Parallel()
	c := impatient(t, 4)
	group, members := schedulertest.BoundGang("theirs", 4, "c0-n0", "c0-n1", "c0-n2")
	for _, pod := range members {
		pod.Spec.SchedulerName = corev1.DefaultSchedulerName
	}
	c.Create(t, group, members)
	c.KeepTerminating()
	c.DeletePods(t, members[:1])
	c.RemovePods(t, members[1:2])
	time.Sleep(2 * time.Second) // an incomplete gang of ours says so within a third of that
	now, err := c.SchedulingV1beta1().PodGroups(schedulertest.Namespace).Get(t.Context(), "theirs", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if said := apimeta.FindStatusCondition(now.Status.Conditions, explanation.Condition); said != nil {
		t.Errorf("it says %+v", said)
	}
}
