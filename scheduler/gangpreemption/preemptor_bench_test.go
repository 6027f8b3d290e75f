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

// BenchmarkWaitingPreemptor measures the cost of a gang that waits for its victims, which take long to leave, on 1,000
// nodes: of one core, beyond an idle scheduler.
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
	schedulertest.SetPriority(group, members, 1_001_000)
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

// BenchmarkSinglePreemptor measures the cost of a pod in no gang that has others leave, from its creation to its
// binding, in a fleet full of gangs of four: chosen by the queue, and, for a pod with a port, by in-tree preemption.
// Each pod takes the place of another gang.
func BenchmarkSinglePreemptor(b *testing.B) {
	const pods = 20
	for _, cliques := range []int{20, 100} { // of 50 nodes
		for name, change := range map[string]func(*corev1.Pod){
			"queue": unchanged,
			"in-tree": func(p *corev1.Pod) {
				p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80, ContainerPort: 80, Protocol: corev1.ProtocolTCP}}
			},
		} {
			b.Run(fmt.Sprintf("%s/%d", name, 50*cliques), func(b *testing.B) {
				for b.Loop() {
					c := schedulertest.NewCluster(
						b,
						foursOn(cliques)...) // a benchmark's drops the marks of evicted pods
					var all []time.Duration
					for i := range pods {
						pod := single(fmt.Sprint("high-", i), change)
						schedulertest.SetRequest(pod[0], schedulertest.GPU, "4")
						began := time.Now()
						c.Create(b, pod)
						c.AwaitBound(b, pod, time.Minute)
						if i > 0 { // a scheduler that has just begun considers no gang for a second
							all = append(all, time.Since(began))
						}
					}
					b.ReportMetric(float64(schedulertest.Median(all).Microseconds())/1000, "median-ms")
					c.Stop()
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// foursOn returns cliques of 50 nodes, all but two of each full of gangs of four.
func foursOn(cliques int) []any {
	var objects []any
	for _, node := range schedulertest.Cliques(cliques, 50) {
		objects = append(objects, node)
	}
	for clique := range cliques {
		for first := 0; first+4 <= 50; first += 4 {
			var on []string
			for n := range 4 {
				on = append(on, schedulertest.NodeName(clique, first+n))
			}
			group, members := schedulertest.BoundGang(fmt.Sprintf("low-%d-%d", clique, first), 0, on...)
			schedulertest.SetRunning(group, members, time.Hour, 0)
			objects = append(objects, group, members)
		}
		for n := 48; n < 50; n++ {
			group, members := schedulertest.BoundGang(
				fmt.Sprintf("low-%d-%d", clique, n),
				0,
				schedulertest.NodeName(clique, n),
			)
			schedulertest.SetRunning(group, members, 2*time.Hour, 0)
			objects = append(objects, group, members)
		}
	}
	return objects
}
