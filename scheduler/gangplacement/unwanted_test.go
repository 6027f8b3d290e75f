//go:build !race

package gangplacement_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// A rank ends with an exit code that asks for another node: its gang starts again elsewhere, and other gangs may use
// the node.
func TestGangPlacement_ExitCodeAsksForAnotherNode(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 4))
	group, members := schedulertest.Gang("train", 3, "clique")
	group.Annotations["lockstep.dev/exit-codes"] = "7=other-node"
	c.Create(t, group, members)
	nodes := c.WaitBound(t, members)

	failed, err := c.CoreV1().Pods(schedulertest.Namespace).Get(t.Context(), members[1].Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	failed = failed.DeepCopy()
	failed.Status.Phase = corev1.PodFailed
	failed.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "node", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 7}},
	}}
	if _, err := c.CoreV1().
		Pods(schedulertest.Namespace).
		UpdateStatus(t.Context(), failed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitReport(t, c, "train") // by then all that follow ended pods have seen this one
	c.DeletePods(t, members)
	var again []*corev1.Pod
	for _, member := range members {
		pod := member.DeepCopy()
		pod.Name, pod.UID = "again-"+pod.Name, types.UID("again-"+string(pod.UID))
		again = append(again, pod)
	}
	c.Create(t, again)
	if now := c.WaitBound(t, again); slices.Contains(now, nodes[1]) {
		t.Errorf("the gang is on %v again, a rank of it failed on %s", now, nodes[1])
	}
	single := schedulertest.Pod("single", "4")
	c.Create(t, single)
	if at := c.WaitBound(t, []*corev1.Pod{single}); at[0] != nodes[1] {
		t.Errorf("a pod that may go anywhere is on %v", at)
	}
}

// awaitReport waits until the failure of a rank is reported.
func awaitReport(t *testing.T, c *schedulertest.Cluster, name string) {
	t.Helper()
	for range 500 {
		group, err := c.SchedulingV1beta1().
			PodGroups(schedulertest.Namespace).
			Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if apimeta.IsStatusConditionTrue(group.Status.Conditions, standing.RankFailed) {
			time.Sleep(100 * time.Millisecond)
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the failed rank is not reported")
}
