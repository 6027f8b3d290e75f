package scheduler_test

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/topology"
)

// writes counts what the scheduler writes, by verb and resource.
type writes struct {
	mu sync.Mutex
	by map[string]int
}

// count lets everything through but patches of pods: 128,000 of them would measure the fake store.
func (w *writes) count(action clienttesting.Action) (bool, runtime.Object, error) {
	switch action.GetVerb() {
	case "get", "list", "watch":
		return false, nil, nil
	}
	what := action.GetVerb() + " " + action.GetResource().Resource
	if s := action.GetSubresource(); s != "" {
		what += "/" + s
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.by == nil {
		w.by = make(map[string]int)
	}
	w.by[what]++
	return what == "patch pods/status", nil, nil
}

func (w *writes) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, count := range w.by {
		n += count
	}
	return n
}

// quiet waits until nothing was written for a while.
func (w *writes) quiet(b *testing.B, limit time.Duration) {
	b.Helper()
	last, since := w.total(), time.Now()
	for deadline := time.Now().Add(limit); time.Since(since) < 3*time.Second; time.Sleep(50 * time.Millisecond) {
		if now := w.total(); now != last {
			last, since = now, time.Now()
		}
		if time.Now().After(deadline) {
			b.Fatalf("the scheduler still writes after %v: %v", limit, w.by)
		}
	}
}

const (
	racks    = 32
	rackSize = 64
)

// hopeless makes gangs of a few members more than a rack has nodes, of eight sizes.
func hopeless(gangs int) []runtime.Object {
	var objects []runtime.Object
	for i := range gangs {
		group, members := gang(fmt.Sprint("hopeless-", i), rackSize+1+i%8, "clique")
		queuedAt(group, 3600+i)
		objects = append(append(objects, group), as(members...)...)
	}
	return objects
}

// rackful makes a gang that fills a rack.
func rackful(b *testing.B, f *fleet, name string, second int) []*corev1.Pod {
	b.Helper()
	group, members := gang(name, rackSize, "clique")
	group.Annotations[topology.AnnotationRequiredTopology] = "clique"
	queuedAt(group, second)
	return f.submit(b, group, members)
}

// What gangs that cannot be placed cost those that can, and the API server; and how soon one that waits gets the rack that
// becomes free, if its pods end at once and if they end over half a second.
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
	f := newFleet(b, append(as(cliques(racks, rackSize)...), hopeless(parked)...)...)
	f.writes.quiet(b, 100*time.Second)
	b.ReportMetric(time.Since(begin).Seconds(), "s-to-park")

	if parked > 0 {
		before := f.writes.total()
		time.Sleep(20 * time.Second)
		b.ReportMetric(float64(f.writes.total()-before)*3/float64(parked), "writes/gang/min")
	}
	var sum timed
	var latency []time.Duration
	var running [][]*corev1.Pod
	for i := range racks {
		sum.measure(b, 1, func() {
			start := time.Now()
			members := rackful(b, f, fmt.Sprint("runs-", i), i)
			f.await(b, members, time.Minute)
			latency = append(latency, time.Since(start))
			running = append(running, members)
		})
	}
	b.ReportMetric(float64(median(latency).Microseconds())/1000, "create-to-bound-p50-ms")
	b.ReportMetric(sum.attempt(), "ms/attempt")

	const freed = 50
	var waiting [][]*corev1.Pod
	for i := range 2 * freed {
		waiting = append(waiting, rackful(b, f, fmt.Sprint("waits-", i), 100+i))
	}
	f.writes.quiet(b, time.Minute)
	for _, how := range []struct {
		name  string
		pause time.Duration
	}{{"at-once", 0}, {"spread", 500 * time.Millisecond / rackSize}} {
		var took []time.Duration
		overtaken := 0
		for j := range freed {
			gone := f.free(b, running[j%racks], how.pause)
			next := f.firstOf(b, waiting)
			f.await(b, waiting[next], time.Minute)
			if next == 0 {
				took = append(took, time.Since(gone))
			} else {
				overtaken++
			}
			running[j%racks] = waiting[next]
			waiting = slices.Delete(waiting, next, next+1)
		}
		b.ReportMetric(float64(overtaken), how.name+"-overtaken")
		b.ReportMetric(float64(median(took).Microseconds())/1000, how.name+"-start-p50-ms")
		b.ReportMetric(float64(quantile(took, 0.99).Microseconds())/1000, how.name+"-start-p99-ms")
	}
}

// firstOf waits until one of the gangs starts, and says which.
func (f *fleet) firstOf(b *testing.B, gangs [][]*corev1.Pod) int {
	b.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		for i, members := range gangs {
			if f.nodeOf(members[0].Name) != "" {
				return i
			}
		}
	}
	b.Fatal("a rack was free for a minute, and nobody who waits for one started")
	return 0
}
