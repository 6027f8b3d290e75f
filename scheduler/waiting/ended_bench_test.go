//go:build !race

package waiting_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// BenchmarkEndedPod measures the cost of the end of a pod for the scheduler, eight a second, on 2,048 nodes with 8,192
// pods: without and with a gang that waits, whose place each end may touch. The target is twice as much at
// most (scheduler/BENCH.md).
func BenchmarkEndedPod(b *testing.B) {
	for _, waiting := range []int{0, 1} {
		b.Run(fmt.Sprint(waiting, "waiting"), func(b *testing.B) {
			for b.Loop() {
				benchEndedPod(b, waiting)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func benchEndedPod(b *testing.B, waiting int) {
	b.Helper()
	const perNode, ends, pause = 4, 80, 125 * time.Millisecond
	var objects []runtime.Object
	var running []*corev1.Pod
	for _, node := range schedulertest.Cliques(racks, rackSize) {
		objects = append(objects, node)
		for i := range perNode {
			p := schedulertest.Pod(fmt.Sprintf("on-%s-%d", node.Name, i), "1")
			p.Spec.NodeName = node.Name
			running = append(running, p)
		}
	}
	c, writes := schedulertest.NewBenchmarkCluster(b, objects, running)
	for i := range waiting {
		group, members := schedulertest.Gang(fmt.Sprint("waits-", i), rackSize, "clique")
		group.Annotations[topology.AnnotationRequiredTopology] = "clique"
		c.Submit(b, group, members)
	}
	writes.WaitQuiet(b, time.Minute)
	slices.SortFunc(running, func(a, b *corev1.Pod) int { // all over the fleet
		return compareReversed(a.Name, b.Name)
	})
	before := schedulertest.ProcessCPU(b)
	c.Free(b, running[:ends], pause)
	time.Sleep(2 * time.Second)
	b.ReportMetric(float64(schedulertest.ProcessCPU(b)-before)/float64(time.Millisecond)/ends, "cpu-ms/pod")
}

// compareReversed compares the last characters of names first.
func compareReversed(a, b string) int {
	for i := 1; i <= min(len(a), len(b)); i++ {
		if x, y := a[len(a)-i], b[len(b)-i]; x != y {
			return int(x) - int(y)
		}
	}
	return len(a) - len(b)
}
