package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
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
	nodes := cliques(20, 50)
	for _, node := range nodes {
		objects = append(objects, node)
	}
	for c := range 20 {
		var on []string
		for n := range 50 {
			on = append(on, nodeName(c, n))
		}
		group, members := running(fmt.Sprint("low-", c), 0, on...)
		for _, p := range members {
			p.Spec.TerminationGracePeriodSeconds = new(int64(3600))
		}
		objects = slices.Concat(objects, as(group), as(members...))
	}
	f := newFleet(b, objects...)
	// Kubelets take their time: a deletion is only marked.
	f.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		deletion, ok := action.(clienttesting.DeleteAction)
		if !ok {
			return false, nil, nil
		}
		object, err := f.Tracker().Get(action.GetResource(), action.GetNamespace(), deletion.GetName())
		if err != nil {
			return true, nil, err
		}
		pod, _ := object.DeepCopyObject().(*corev1.Pod)
		pod.DeletionTimestamp = new(metav1.NewTime(time.Now().Add(time.Hour)))
		return true, nil, f.Tracker().Update(action.GetResource(), pod, pod.Namespace)
	})
	idle := processCPU(b)
	time.Sleep(watched / 4)
	idle = processCPU(b) - idle
	group, members := gang("high", 50, "clique")
	raise(group, members, 1000)
	f.submit(b, group, members)
	f.writes.quiet(b, time.Minute)
	before := processCPU(b)
	time.Sleep(watched)
	used := processCPU(b) - before - 4*idle
	b.ReportMetric(float64(used)/float64(watched), "cores")
	for _, p := range members {
		if f.nodeOf(p.Name) != "" {
			b.Fatal("the gang did not wait")
		}
	}
}
