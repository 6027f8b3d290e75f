package frameworks_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A job continues elsewhere when its machine is lost: its kubelet and container runtime end, Kubernetes notices, and
// the Node is deleted, as clouds do. Before that, Kubernetes leaves the pods Terminating, because they may run. It is
// the last test.
func TestIncident_NodeStopped(t *testing.T) {
	ended := begin(t, "moved")
	before := ranks(t, "moved", 1)
	for _, node := range nodes {
		if node.Name == before[0].Spec.NodeName {
			if err := node.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	lost := before[0].Spec.NodeName
	eventually(t, "the node is not ready", func() bool {
		node, err := shared.Client.CoreV1().Nodes().Get(t.Context(), lost, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(
			node.Spec.Taints,
			func(taint corev1.Taint) bool { return taint.Effect == corev1.TaintEffectNoExecute },
		)
	})
	if err := shared.Client.CoreV1().Nodes().Delete(t.Context(), lost, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	after := ranks(t, "moved", 1, before...)
	if after[0].Spec.NodeName == lost {
		t.Errorf("the job is on %s again", after[0].Spec.NodeName)
	}
	completed(t, <-ended, "rank 0 ends")
}
