package schedulertest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FullFleet is cliques of four nodes on which gangs of priority 0 run, an hour by now. Gang low-1-2 begins at node 2 of
// clique 1.
type FullFleet struct {
	// Nodes are the nodes, and the objects that a test adds.
	Nodes []runtime.Object
	// Groups are the gangs by name.
	Groups map[string]*schedulingv1beta1.PodGroup
	// Pods are the members of the gangs by the gang's name.
	Pods map[string][]*corev1.Pod
}

// NewFullFleet returns a clique for each size, full of gangs of that size.
func NewFullFleet(sizes ...int) *FullFleet {
	f := &FullFleet{Pods: map[string][]*corev1.Pod{}, Groups: map[string]*schedulingv1beta1.PodGroup{}}
	f.Nodes = Objects(Cliques(len(sizes), 4)...)
	for clique, size := range sizes {
		for first := 0; first < 4; first += size {
			var nodes []string
			for n := range size {
				nodes = append(nodes, NodeName(clique, first+n))
			}
			name := fmt.Sprintf("low-%d-%d", clique, first)
			f.Groups[name], f.Pods[name] = BoundGang(name, 0, nodes...)
			SetRunning(f.Groups[name], f.Pods[name], time.Hour, 0)
		}
	}
	return f
}

// Objects returns the nodes, PodGroups and pods.
func (f *FullFleet) Objects() []runtime.Object {
	objects := slices.Clone(f.Nodes)
	for name, group := range f.Groups {
		objects = append(objects, group)
		objects = slices.Concat(objects, Objects(f.Pods[name]...))
	}
	return objects
}

// Preempt starts a cluster, submits a gang of four of priority 1,001,000 in one clique, which evicts whatever that
// loses, and returns the nodes to which it is bound.
func (f *FullFleet) Preempt(tb testing.TB, change func(*corev1.Pod)) (*Cluster, []string) {
	tb.Helper()
	c := NewCluster(tb, f.Objects())
	high, members := GangWith("high", 4, "clique", change)
	SetPriority(high, members, 1_001_000)
	c.Create(tb, high, members)
	return c, c.WaitBound(tb, members)
}

// Evicted returns the gangs that lost all their pods, sorted, and those that lost some.
func (f *FullFleet) Evicted(tb testing.TB, c *Cluster) (whole, part []string) {
	tb.Helper()
	for name, pods := range f.Pods {
		lost := 0
		for _, p := range pods {
			if _, err := c.CoreV1().Pods(Namespace).Get(tb.Context(), p.Name, metav1.GetOptions{}); err != nil {
				lost++
			}
		}
		switch {
		case lost == len(pods):
			whole = append(whole, name)
		case lost > 0:
			part = append(part, name)
		}
	}
	slices.Sort(whole)
	return whole, part
}
