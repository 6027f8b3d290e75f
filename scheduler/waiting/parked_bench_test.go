//go:build !race

package waiting_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	racks    = 32
	rackSize = 64
)

// hopeless makes gangs of a few members more than a rack has nodes, of eight sizes.
func hopeless(gangs int) []runtime.Object {
	var objects []runtime.Object
	for i := range gangs {
		group, members := schedulertest.Gang(fmt.Sprint("hopeless-", i), rackSize+1+i%8, "clique")
		schedulertest.SetQueuedAt(group, 3600+i)
		objects = append(append(objects, group), schedulertest.Objects(members...)...)
	}
	return objects
}

// rackful makes a gang that fills a rack.
func rackful(b *testing.B, c *schedulertest.Cluster, name string, second int) []*corev1.Pod {
	b.Helper()
	group, members := schedulertest.Gang(name, rackSize, "clique")
	group.Annotations[topology.AnnotationRequiredTopology] = "clique"
	schedulertest.SetQueuedAt(group, second)
	return c.Submit(b, group, members)
}

// BenchmarkParked measures the cost of gangs that cannot be placed for those that can, and for the API server; and the
// time until one that waits gets the rack that becomes free, if its pods end at once and if they end over half a
// second.
func BenchmarkParked(b *testing.B) {
	for _, parked := range []int{0, 2000} {
		b.Run(strconv.Itoa(parked), func(b *testing.B) {
			for b.Loop() {
				benchParked(b, parked)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

func benchParked(b *testing.B, parked int) {
	b.Helper()
	begin := time.Now()
	c, writes := schedulertest.NewBenchmarkCluster(b, schedulertest.Cliques(racks, rackSize), hopeless(parked))
	writes.WaitQuiet(b, 100*time.Second)
	b.ReportMetric(time.Since(begin).Seconds(), "s-to-park")

	if parked > 0 {
		before := writes.Total()
		time.Sleep(20 * time.Second)
		b.ReportMetric(float64(writes.Total()-before)*3/float64(parked), "writes/gang/min")
	}
	var sum schedulertest.AttemptTimer
	var latency []time.Duration
	var running [][]*corev1.Pod
	for i := range racks {
		sum.Measure(b, 1, func() {
			start := time.Now()
			members := rackful(b, c, fmt.Sprint("runs-", i), i)
			c.AwaitBound(b, members, time.Minute)
			latency = append(latency, time.Since(start))
			running = append(running, members)
		})
	}
	b.ReportMetric(float64(schedulertest.Median(latency).Microseconds())/1000, "create-to-bound-p50-ms")
	b.ReportMetric(sum.PerAttempt(), "ms/attempt")

	const freed = 50
	var waiting [][]*corev1.Pod
	for i := range 2 * freed {
		waiting = append(waiting, rackful(b, c, fmt.Sprint("waits-", i), 100+i))
	}
	writes.WaitQuiet(b, time.Minute)
	for _, how := range []struct {
		name  string
		pause time.Duration
	}{{"at-once", 0}, {"spread", 500 * time.Millisecond / rackSize}} {
		var took []time.Duration
		overtaken := 0
		for j := range freed {
			gone := c.Free(b, running[j%racks], how.pause)
			next := firstOf(b, c, waiting)
			c.AwaitBound(b, waiting[next], time.Minute)
			if next == 0 {
				took = append(took, time.Since(gone))
			} else {
				overtaken++
			}
			running[j%racks] = waiting[next]
			waiting = slices.Delete(waiting, next, next+1)
		}
		b.ReportMetric(float64(overtaken), how.name+"-overtaken")
		b.ReportMetric(float64(schedulertest.Median(took).Microseconds())/1000, how.name+"-start-p50-ms")
		b.ReportMetric(float64(schedulertest.Quantile(took, 0.99).Microseconds())/1000, how.name+"-start-p99-ms")
	}
}

// firstOf waits until one of the gangs starts, and says which.
func firstOf(b *testing.B, c *schedulertest.Cluster, gangs [][]*corev1.Pod) int {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for i, members := range gangs {
			if c.NodeOf(members[0].Name) != "" {
				return i
			}
		}
	}
	b.Fatal("a rack was free for a minute, and nobody who waits for one started")
	return 0
}
