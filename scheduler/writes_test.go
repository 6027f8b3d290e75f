package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// counting is a cluster whose API server counts what the scheduler writes, Events excepted.
func counting(t *testing.T, nodes []*corev1.Node) (*cluster, *writes) {
	t.Helper()
	c, w := &cluster{Clientset: fake.NewClientset(), bound: make(map[string]string)}, &writes{}
	c.PrependReactor("create", "pods", c.bind)
	c.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		_, _, _ = w.count(action)
		return false, nil, nil // the store has all of it
	})
	for _, n := range nodes {
		if err := c.Tracker().Add(n); err != nil {
			t.Fatal(err)
		}
	}
	c.start(t)
	return c, w
}

func (w *writes) of(what string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.by[what]
}

// A gang that starts at once costs its bindings, and little more: 1.05 writes a member at most.
func TestGang_StartsWithOneWriteAMember(t *testing.T) {
	const size = 64
	c, w := counting(t, cliques(1, size))
	group, members := gang("train", size, "clique")
	c.add(t, group, members)
	created := w.total() // what this test wrote
	c.waitBound(t, members)
	time.Sleep(200 * time.Millisecond)
	if got := w.total() - created; got*100 > size*105 {
		t.Errorf("%d writes for %d members: %v", got, size, w.by)
	}
}

// The members of a gang that waits are written about once, however often nodes come that do not help it. (The framework writes the
// PodGroup's own condition with each attempt.)
func TestGang_WaitsWithOneWriteAMember(t *testing.T) {
	const size = 16
	c, w := counting(t, cliques(1, size-1))
	group, members := gang("large", size, "clique")
	group.Annotations["lockstep.dev/required-topology"] = "clique"
	c.add(t, group, members)
	c.waitRejected(t, "large")
	time.Sleep(2 * time.Second)
	for i := range 5 {
		other := cliques(2, 1)[0].DeepCopy()
		other.Name = fmt.Sprint("other", i)
		other.Labels = map[string]string{
			corev1.LabelHostname:    other.Name,
			"nvidia.com/gpu.clique": fmt.Sprint("else.", i),
		}
		if _, err := c.CoreV1().Nodes().Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(400 * time.Millisecond)
	}
	time.Sleep(time.Second)
	if got := w.of("patch pods/status"); got > size {
		t.Errorf("%d writes for %d members that wait: %v", got, size, w.by)
	}
}
