package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/legacyregistry"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler"
	"github.com/lockstep-project/lockstep/scheduler/gangplacement"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/topology"
)

// fleet is a cluster on which gangs come and go. Its API server costs next to nothing: objects go straight to the store,
// and what the scheduler writes into waiting pods is counted and dropped.
type fleet struct {
	*cluster
	writes *writes
}

func newFleet(b *testing.B, objects ...runtime.Object) *fleet {
	b.Helper()
	f := &fleet{cluster: unstarted(b, objects...), writes: &writes{}}
	f.PrependReactor("*", "*", f.writes.count)
	f.start(b)
	return f
}

// submit creates a gang and returns its members.
func (f *fleet) submit(
	b *testing.B, group *schedulingv1beta1.PodGroup, members []*corev1.Pod,
) []*corev1.Pod {
	b.Helper()
	for _, o := range append(as(group), as(members...)...) {
		if err := f.Tracker().Add(o); err != nil {
			b.Fatal(err)
		}
	}
	return members
}

// await returns when all members are bound.
func (f *fleet) await(b *testing.B, members []*corev1.Pod, limit time.Duration) {
	b.Helper()
	last := len(members) - 1
	for deadline := time.Now().Add(limit); ; time.Sleep(200 * time.Microsecond) {
		for last >= 0 && f.nodeOf(members[last].Name) != "" {
			last--
		}
		if last < 0 {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("%s was not bound in %v", members[last].Name, limit)
		}
	}
}

// free ends pods and says when the last one went.
func (f *fleet) free(b *testing.B, members []*corev1.Pod, pause time.Duration) time.Time {
	b.Helper()
	for _, p := range members {
		if err := f.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), namespace, p.Name); err != nil {
			b.Fatal(err)
		}
		time.Sleep(pause)
	}
	return time.Now()
}

// attempts reads how many attempts of gangs ended in success, and the seconds they took.
func attempts(b *testing.B) (count uint64, seconds float64) {
	b.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "scheduler_podgroup_scheduling_attempt_duration_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "result" && l.GetValue() == "scheduled" {
					count += m.GetHistogram().GetSampleCount()
					seconds += m.GetHistogram().GetSampleSum()
				}
			}
		}
	}
	return count, seconds
}

// timed sums up what something took, and the attempts of gangs in it.
type timed struct {
	gangs   int
	wall    time.Duration
	count   uint64
	seconds float64
}

func (t *timed) measure(b *testing.B, gangs int, what func()) {
	b.Helper()
	count, seconds := attempts(b)
	begin := time.Now()
	what()
	t.wall += time.Since(begin)
	t.gangs += gangs
	after, total := attempts(b)
	t.count, t.seconds = t.count+after-count, t.seconds+total-seconds
}

func (t *timed) perGang() float64 { return t.wall.Seconds() * 1000 / float64(t.gangs) }
func (t *timed) attempt() float64 { return t.seconds * 1000 / float64(t.count) }

// What the looser placement costs a gang whose plan holds. With a node cap there is none; whole-node members are placed
// alike with and without the cap.
func BenchmarkLoosePlacement(b *testing.B) {
	const size, gangs, rounds = 64, 8, 16
	f := newFleet(b, as(cliques(4, 128)...)...)
	var with, without timed
	run := func(round int, name string, wishes map[string]string) func() {
		return func() {
			var all []*corev1.Pod
			for i := range gangs {
				group, members := gang(fmt.Sprintf("%s-%d-%d", name, round, i), size, "")
				group.Annotations = wishes
				all = append(all, f.submit(b, group, members)...)
			}
			f.await(b, all, time.Minute)
			f.free(b, all, 0)
		}
	}
	round := 0
	for b.Loop() {
		for range rounds {
			round++
			measured := []struct {
				t    *timed
				what func()
			}{
				{&with, run(round, "loose", map[string]string{topology.AnnotationRequiredTopology: "clique"})},
				{&without, run(round, "planned", map[string]string{
					topology.AnnotationRequiredTopology: "clique", topology.AnnotationMaxPerNode: "1",
				})},
			}
			if round%2 == 0 {
				slices.Reverse(measured)
			}
			for _, m := range measured {
				time.Sleep(200 * time.Millisecond) // until the scheduler has seen that the last ones are gone
				m.t.measure(b, gangs, m.what)
			}
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(with.perGang(), "loose-ms/gang")
	b.ReportMetric(without.perGang(), "planned-ms/gang")
	b.ReportMetric(with.perGang()/without.perGang(), "ratio")
	b.ReportMetric(with.attempt(), "loose-ms/attempt")
	b.ReportMetric(without.attempt(), "planned-ms/attempt")
	b.ReportMetric(with.attempt()/without.attempt(), "attempt-ratio")
}

// witness notes when the scheduler first asks for the plan of a gang, and of how many members.
type witness struct {
	*gangplacement.GangPlacement
	asked chan int
}

func (w *witness) GeneratePlacements(
	_ context.Context, _ fwk.PodGroupCycleState, info fwk.PodGroupInfo, _ *fwk.Placement,
) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	select {
	case w.asked <- len(info.GetUnscheduledPods()):
	default:
	}
	return nil, fwk.NewStatus(fwk.Unschedulable, "only the question matters")
}

// From the first member created to the whole gang being asked about.
func BenchmarkAssembly(b *testing.B) {
	for _, size := range []int{1000, 4000, 10_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			var took, created []time.Duration
			for b.Loop() {
				for range 3 {
					t, c := assemble(b, size)
					took, created = append(took, t), append(created, c)
				}
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(median(took).Microseconds())/1000, "ms/gang")
			b.ReportMetric(float64(median(took).Nanoseconds())/float64(size)/1000, "µs/member")
			b.ReportMetric(float64(median(created).Microseconds())/1000, "creating-ms/gang")
		})
	}
}

// assemble returns how long it took until the gang was asked about, and until its last member was created.
func assemble(b *testing.B, size int) (took, created time.Duration) {
	b.Helper()
	w := &witness{asked: make(chan int, 1)}
	plugins := scheduler.Registry(timing.With(clock.RealClock{}))
	factory := plugins[gangplacement.Name]
	plugins[gangplacement.Name] = func(ctx context.Context, o runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		p, err := factory(ctx, o, h)
		w.GangPlacement, _ = p.(*gangplacement.GangPlacement)
		return w, err
	}
	f := &fleet{cluster: unstarted(b, as(cliques(1, 4)...)...), writes: &writes{}}
	f.PrependReactor("*", "*", f.writes.count)
	f.launch(b.Context(), b, f, shipped(b), plugins)
	group, members := gang("large", size, "")
	group.UID = types.UID("large")
	begin := time.Now()
	f.submit(b, group, members)
	created = time.Since(begin)
	select {
	case n := <-w.asked:
		if n != size {
			b.Fatalf("the scheduler asked about %d of %d members", n, size)
		}
	case <-time.After(time.Minute):
		b.Fatal("the gang was not assembled in a minute")
	}
	return time.Since(begin), created
}

func median(all []time.Duration) time.Duration { return quantile(all, 0.5) }

// quantile sorts what it is given.
func quantile(all []time.Duration, q float64) time.Duration {
	slices.Sort(all)
	return all[min(int(q*float64(len(all))), len(all)-1)]
}
