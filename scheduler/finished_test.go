//go:build !race

package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// sweep is a gang of four pods of a native Job.
func sweep(try int) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group, members := schedulertest.Gang("sweep", 4, "")
	for i, pod := range members {
		pod.Name = fmt.Sprintf("try-%d-%d", try, i)
		pod.UID = types.UID(pod.Name)
		pod.OwnerReferences = []metav1.OwnerReference{
			{
				APIVersion: "batch/v1",
				Kind:       "Job",
				Name:       "sweep",
				UID:        types.UID(fmt.Sprint("job-", try)),
				Controller: new(true),
			},
		}
	}
	return group, members
}

// ends has pods end in a phase.
func ends(t *testing.T, c *schedulertest.Cluster, phase corev1.PodPhase, pods ...*corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		now, err := c.CoreV1().Pods(schedulertest.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		now = now.DeepCopy()
		now.Status.Phase = phase
		if _, err := c.CoreV1().
			Pods(schedulertest.Namespace).
			UpdateStatus(t.Context(), now, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// Two members of a native Job's gang have succeeded, one has failed and is made again: it gets a node, although the
// gang will never have four members again. The owner's fields of the gang stay.
func TestFinishedMembers_NeedNotComeAgain(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4))
	group, members := sweep(1)
	c.Create(t, group, members)
	c.WaitBound(t, members)
	ends(t, c, corev1.PodSucceeded, members[0], members[1])
	ends(t, c, corev1.PodFailed, members[2])
	again := schedulertest.Recreated(members[2])
	c.Create(t, again)
	c.WaitBound(t, []*corev1.Pod{again})
	now, err := c.SchedulingV1beta1().
		PodGroups(schedulertest.Namespace).
		Get(t.Context(), group.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := now.Annotations[topology.AnnotationFinished]; got != "2 of 4" ||
		now.Spec.SchedulingPolicy.Gang.MinCount != 4 {
		t.Errorf("the group says %q, and needs %d", got, now.Spec.SchedulingPolicy.Gang.MinCount)
	}
}

// All start again while the pods that succeeded are still there: they are another Job's, and none of the new ones
// starts before all are there.
func TestFinishedMembers_CountNotForTheNextTry(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4))
	group, members := sweep(1)
	c.Create(t, group, members)
	c.WaitBound(t, members)
	ends(t, c, corev1.PodSucceeded, members[0], members[1])
	ends(t, c, corev1.PodFailed, members[2])
	again := schedulertest.Recreated(members[2])
	c.Create(t, again)
	c.WaitBound(t, []*corev1.Pod{again})

	c.DeletePods(t, []*corev1.Pod{members[2], members[3], again})
	_, next := sweep(2)
	c.Create(t, next[:3])
	time.Sleep(time.Second) // in which they would start
	for _, pod := range next[:3] {
		if at := c.NodeOf(pod.Name); at != "" {
			t.Fatalf("%s is on %s before the gang is whole", pod.Name, at)
		}
	}
	c.Create(t, next[3])
	c.WaitBound(t, next)
}

// Two members of a Job have succeeded, and their pods are deleted: its owner suspended it in that second. The other
// two, which are made when it resumes, get their nodes after half a minute, when the Job has been read. (Package
// simulator/faults, seed 615 of its day.)
func TestFinishedMembers_ThatAreGone(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4))
	group, members := sweep(1)
	owner := members[0].OwnerReferences[0]
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: schedulertest.Namespace, Name: owner.Name, UID: owner.UID},
		Status:     batchv1.JobStatus{Succeeded: 2},
	}
	if _, err := c.BatchV1().Jobs(job.Namespace).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.Create(t, group, members[2:])
	deadline := time.Now().Add(45 * time.Second)
	for c.NodeOf(members[2].Name) == "" && time.Now().Before(deadline) {
		time.Sleep(100 * time.Millisecond)
	}
	c.WaitBound(t, members[2:])
}
