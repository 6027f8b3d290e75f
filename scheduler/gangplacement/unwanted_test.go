//go:build !race

package gangplacement_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// A rank ends with an exit code that asks for another node: its gang starts again elsewhere, and other gangs may use the node.
func TestGangPlacement_ExitCodeAsksForAnotherNode(t *testing.T) {
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
