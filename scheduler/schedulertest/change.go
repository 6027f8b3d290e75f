package schedulertest

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"
)

// Create creates pods, slices of pods and PodGroups in the given order.
func (c *Cluster) Create(tb testing.TB, objects ...any) {
	tb.Helper()
	for _, o := range objects {
		var err error
		switch o := o.(type) {
		case *corev1.Pod:
			_, err = c.CoreV1().Pods(Namespace).Create(tb.Context(), o, metav1.CreateOptions{})
		case *schedulingv1beta1.PodGroup:
			_, err = c.SchedulingV1beta1().PodGroups(Namespace).Create(tb.Context(), o, metav1.CreateOptions{})
		case []*corev1.Pod:
			for _, pod := range o {
				c.Create(tb, pod)
			}
		default:
			tb.Fatalf("Create does not know %T", o)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// DeletePods deletes pods through the API.
func (c *Cluster) DeletePods(tb testing.TB, pods []*corev1.Pod) {
	tb.Helper()
	for _, pod := range pods {
		if err := c.CoreV1().Pods(Namespace).Delete(tb.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
			tb.Fatal(err)
		}
	}
}

// RemovePods removes pods from the store, past all reactors: a kubelet that has ended them.
func (c *Cluster) RemovePods(tb testing.TB, pods []*corev1.Pod) {
	tb.Helper()
	for _, p := range pods {
		if err := c.Tracker().Delete(podResource(), Namespace, p.Name); err != nil {
			tb.Fatal(err)
		}
	}
}

// LoseNodes deletes nodes, and the pods that ran on them.
func (c *Cluster) LoseNodes(tb testing.TB, pods []*corev1.Pod, nodes ...string) {
	tb.Helper()
	for _, node := range nodes {
		if err := c.CoreV1().Nodes().Delete(tb.Context(), node, metav1.DeleteOptions{}); err != nil {
			tb.Fatal(err)
		}
	}
	c.DeletePods(tb, pods)
}

// UpdateNode changes a node through the API.
func (c *Cluster) UpdateNode(tb testing.TB, name string, change func(*corev1.Node)) {
	tb.Helper()
	node, err := c.CoreV1().Nodes().Get(tb.Context(), name, metav1.GetOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	node = node.DeepCopy()
	change(node)
	if _, err := c.CoreV1().Nodes().Update(tb.Context(), node, metav1.UpdateOptions{}); err != nil {
		tb.Fatal(err)
	}
}

// Evictions reads the recorded API calls: the reason of each pod's condition DisruptionTarget by pod name, and the
// names of the gang's pods that were deleted after they got that condition, sorted.
func (c *Cluster) Evictions(gang string) (reasons map[string]string, deleted []string) {
	reasons = map[string]string{}
	for _, a := range c.Actions() {
		switch a := a.(type) {
		case clienttesting.PatchAction:
			text := string(a.GetPatch())
			if a.GetSubresource() == "status" && strings.Contains(text, string(corev1.DisruptionTarget)) {
				_, reason, _ := strings.Cut(text, `"reason":"`)
				reasons[a.GetName()], _, _ = strings.Cut(reason, `"`)
			}
		case clienttesting.DeleteAction:
			name := a.GetName()
			if strings.HasPrefix(name, gang+"-") && reasons[name] != "" {
				deleted = append(deleted, name)
			}
		}
	}
	slices.Sort(deleted)
	return reasons, deleted
}
