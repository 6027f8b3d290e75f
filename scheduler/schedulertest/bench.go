package schedulertest

import (
	"maps"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

// NewBenchmarkCluster starts a cluster whose API server costs next to nothing: patches of waiting pods are counted and
// dropped.
func NewBenchmarkCluster(b *testing.B, objects ...any) (*Cluster, *Writes) {
	b.Helper()
	c := NewUnstartedCluster(b, objects...)
	writes := c.DropPodPatches()
	c.Start(b)
	return c, writes
}

// Submit puts a gang into the store, past the API, and returns its members.
func (c *Cluster) Submit(
	tb testing.TB, group *schedulingv1beta1.PodGroup, members []*corev1.Pod,
) []*corev1.Pod {
	tb.Helper()
	c.store(tb, group, members)
	return members
}

// AwaitBound is WaitBoundFor for benchmarks: it polls every 200 µs.
func (c *Cluster) AwaitBound(tb testing.TB, members []*corev1.Pod, timeout time.Duration) {
	tb.Helper()
	last := len(members) - 1
	for deadline := time.Now().Add(timeout); ; time.Sleep(200 * time.Microsecond) {
		for last >= 0 && c.NodeOf(members[last].Name) != "" {
			last--
		}
		if last < 0 {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("%s was not bound in %v", members[last].Name, timeout)
		}
	}
}

// Free removes pods from the store, with a pause after each, and returns the instant at which it removed the last one.
func (c *Cluster) Free(tb testing.TB, members []*corev1.Pod, pause time.Duration) time.Time {
	tb.Helper()
	for i := range members {
		c.RemovePods(tb, members[i:i+1])
		time.Sleep(pause)
	}
	return time.Now()
}

// Writes counts the scheduler's and the test's write requests by verb and resource, such as "patch pods/status".
type Writes struct {
	mu sync.Mutex
	by map[string]int
}

// CountWrites counts all write requests from now on.
func (c *Cluster) CountWrites() *Writes {
	w := &Writes{by: make(map[string]int)}
	c.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		w.count(action)
		return false, nil, nil
	})
	return w
}

// DropPodPatches counts all write requests and drops patches of pods' status: 128,000 of them would measure the fake
// store.
func (c *Cluster) DropPodPatches() *Writes {
	w := &Writes{by: make(map[string]int)}
	c.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return w.count(action) == "patch pods/status", nil, nil
	})
	return w
}

// count counts a request and returns the verb and resource of a write, "" for a read.
func (w *Writes) count(action clienttesting.Action) string {
	switch action.GetVerb() {
	case "get", "list", "watch":
		return ""
	}
	what := action.GetVerb() + " " + action.GetResource().Resource
	if s := action.GetSubresource(); s != "" {
		what += "/" + s
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.by[what]++
	return what
}

// ByRequest returns the number of write requests of each kind.
func (w *Writes) ByRequest() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.by)
}

// Total returns the number of all write requests.
func (w *Writes) Total() int {
	n := 0
	for _, count := range w.ByRequest() {
		n += count
	}
	return n
}

// WaitQuiet waits until nothing was written for three seconds.
func (w *Writes) WaitQuiet(tb testing.TB, timeout time.Duration) {
	tb.Helper()
	last, since := w.Total(), time.Now()
	for deadline := time.Now().Add(timeout); time.Since(since) < 3*time.Second; time.Sleep(50 * time.Millisecond) {
		if now := w.Total(); now != last {
			last, since = now, time.Now()
		}
		if time.Now().After(deadline) {
			tb.Fatalf("the scheduler still writes after %v: %v", timeout, w.ByRequest())
		}
	}
}

// AttemptTimer sums up the time that gangs take, and the duration of the scheduler's attempts meanwhile.
type AttemptTimer struct {
	gangs   int
	wall    time.Duration
	count   uint64
	seconds float64
}

// Measure runs a function that schedules so many gangs.
func (t *AttemptTimer) Measure(tb testing.TB, gangs int, schedule func()) {
	tb.Helper()
	count, seconds := attempts(tb)
	begin := time.Now()
	schedule()
	t.wall += time.Since(begin)
	t.gangs += gangs
	after, total := attempts(tb)
	t.count, t.seconds = t.count+after-count, t.seconds+total-seconds
}

// Wall returns the time that all measured functions took.
func (t *AttemptTimer) Wall() time.Duration { return t.wall }

// PerGang returns the mean milliseconds of wall time per gang.
func (t *AttemptTimer) PerGang() float64 { return t.wall.Seconds() * 1000 / float64(t.gangs) }

// PerAttempt returns the mean milliseconds of a successful attempt.
func (t *AttemptTimer) PerAttempt() float64 { return t.seconds * 1000 / float64(t.count) }

// Median returns the upper median.
func Median(all []time.Duration) time.Duration { return Quantile(all, 0.5) }

// Quantile returns a quantile between 0 and 1.
func Quantile(all []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

// ProcessCPU returns the CPU time that this process has used.
func ProcessCPU(tb testing.TB) time.Duration {
	tb.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
