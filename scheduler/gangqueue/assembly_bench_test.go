//go:build !race

package gangqueue_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/gangplacement"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// planSpy notes when the scheduler first asks for the plan of a gang, and the number of its members.
type planSpy struct {
	*gangplacement.GangPlacement
	asked chan int
}

func (w *planSpy) GeneratePlacements(
	_ context.Context, _ fwk.PodGroupCycleState, info fwk.PodGroupInfo, _ *fwk.Placement,
) (*fwk.GeneratePlacementsResult, *fwk.Status) {
	select {
	case w.asked <- len(info.GetUnscheduledPods()):
	default:
	}
	return nil, fwk.NewStatus(fwk.Unschedulable, "only the question matters")
}

// From the first member created to the evaluation of the whole gang.
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
			b.ReportMetric(float64(schedulertest.Median(took).Microseconds())/1000, "ms/gang")
			b.ReportMetric(float64(schedulertest.Median(took).Nanoseconds())/float64(size)/1000, "µs/member")
			b.ReportMetric(float64(schedulertest.Median(created).Microseconds())/1000, "creating-ms/gang")
		})
	}
}

// assemble returns the time until the gang was evaluated, and until its last member was created.
func assemble(b *testing.B, size int) (took, created time.Duration) {
	b.Helper()
	w := &planSpy{asked: make(chan int, 1)}
	plugins := schedulertest.Registry(clock.RealClock{})
	factory := plugins[gangplacement.Name]
	plugins[gangplacement.Name] = func(ctx context.Context, o runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
		p, err := factory(ctx, o, h)
		w.GangPlacement, _ = p.(*gangplacement.GangPlacement)
		return w, err
	}
	c := schedulertest.NewUnstartedCluster(b, schedulertest.Cliques(1, 4))
	c.DropPodPatches()
	c.StartScheduler(b.Context(), b, c, schedulertest.Config(b), plugins)
	group, members := schedulertest.Gang("large", size, "")
	group.UID = types.UID("large")
	begin := time.Now()
	c.Submit(b, group, members)
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
