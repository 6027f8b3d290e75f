//go:build !race

package gangpreemption_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// What a gang costs that waits for its victims, which take long to leave, on 1,000 nodes: of one core, beyond an idle scheduler.
func BenchmarkWaitingPreemptor(b *testing.B) {
	for b.Loop() {
		benchWaitingPreemptor(b)
	}
	b.ReportMetric(0, "ns/op")
}

func benchWaitingPreemptor(b *testing.B) {
	b.Helper()
	const watched = 20 * time.Second
	var objects []runtime.Object
	nodes := schedulertest.Cliques(20, 50)
	for _, node := range nodes {
		objects = append(objects, node)
	}
	for clique := range 20 {
		var on []string
		for n := range 50 {
			on = append(on, schedulertest.NodeName(clique, n))
		}
		group, members := schedulertest.BoundGang(fmt.Sprint("low-", clique), 0, on...)
		for _, p := range members {
			p.Spec.TerminationGracePeriodSeconds = new(int64(3600))
		}
		objects = slices.Concat(objects, schedulertest.Objects(group), schedulertest.Objects(members...))
	}
	c, writes := schedulertest.NewBenchmarkCluster(b, objects)
	// Kubelets take their time: a deletion is only marked.
	c.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		deletion, ok := action.(clienttesting.DeleteAction)
		if !ok {
			return false, nil, nil
		}
		object, err := c.Tracker().Get(action.GetResource(), action.GetNamespace(), deletion.GetName())
		if err != nil {
			return true, nil, err
		}
		pod, _ := object.DeepCopyObject().(*corev1.Pod)
		pod.DeletionTimestamp = new(metav1.NewTime(time.Now().Add(time.Hour)))
		return true, nil, c.Tracker().Update(action.GetResource(), pod, pod.Namespace)
	})
	idle := schedulertest.ProcessCPU(b)
	time.Sleep(watched / 4)
	idle = schedulertest.ProcessCPU(b) - idle
	group, members := schedulertest.Gang("high", 50, "clique")
	schedulertest.SetPriority(group, members, 1000)
	c.Submit(b, group, members)
	writes.WaitQuiet(b, time.Minute)
	before := schedulertest.ProcessCPU(b)
	time.Sleep(watched)
	used := schedulertest.ProcessCPU(b) - before - 4*idle
	b.ReportMetric(float64(used)/float64(watched), "cores")
	for _, p := range members {
		if c.NodeOf(p.Name) != "" {
			b.Fatal("the gang did not wait")
		}
	}
}
