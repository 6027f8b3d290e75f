package scheduler_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// A gang that starts at once costs its bindings, and little more: 1.05 writes a member at most.
func TestGang_StartsWithOneWriteAMember(t *testing.T) {
	t.Parallel()
	const size = 64
	c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(1, size))
	w := c.CountWrites()
	c.Start(t)
	group, members := schedulertest.Gang("train", size, "clique")
	c.Create(t, group, members)
	created := w.Total() // the writes of this test
	c.WaitBound(t, members)
	time.Sleep(200 * time.Millisecond)
	if got := w.Total() - created; got*100 > size*105 {
		t.Errorf("%d writes for %d members: %v", got, size, w.ByRequest())
	}
}

// The members of a gang that waits are written about once, however often nodes are added that do not help it. (The
// framework writes the PodGroup's own condition with each attempt.)
func TestGang_WaitsWithOneWriteAMember(t *testing.T) {
	t.Parallel()
	const size = 16
	c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(1, size-1))
	w := c.CountWrites()
	c.Start(t)
	group, members := schedulertest.Gang("large", size, "clique")
	group.Annotations["lockstep.dev/required-topology"] = "clique"
	c.Create(t, group, members)
	c.WaitRejected(t, "large")
	time.Sleep(2 * time.Second)
	for i := range 5 {
		other := schedulertest.Cliques(2, 1)[0].DeepCopy()
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
	if got := w.ByRequest()["patch pods/status"]; got > size {
		t.Errorf("%d writes for %d members that wait: %v", got, size, w.ByRequest())
	}
}
