package waiting_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// still is a fleet whose queue does its work beside the loop only as pass lets it.
type still struct {
	*fleet

	beside []func()
}

func newStill(t *testing.T, nodes int) *still {
	t.Helper()
	s := &still{fleet: newFleet(t, nodes, nodes)}
	s.queue = waiting.New(timing.Timing{
		Clock: s.clock, Beside: func(do func()) { s.beside = append(s.beside, do) }, Gather: 50 * time.Millisecond,
	}, contention.DefaultPolicy())
	s.queue.Wakes(func(id contention.ID) { s.woken = append(s.woken, id) })
	s.reader.Version = s.queue.Version
	return s
}

// leaves takes a pod from its node.
func (s *still) leaves(p *corev1.Pod) {
	s.tb.Helper()
	for _, n := range s.nodes {
		if info, _ := n.(*framework.NodeInfo); n.Node().Name == p.Spec.NodeName {
			if err := info.RemovePod(klog.Background(), p); err != nil {
				s.tb.Fatal(err)
			}
		}
	}
	s.queue.Left(p)
}

// pass lets time pass in small steps, and returns the entities that were woken.
func (s *still) pass(d time.Duration) []contention.ID {
	s.woken = nil
	for end := s.clock.Now().Add(d); s.clock.Now().Before(end); {
		s.clock.Step(10 * time.Millisecond)
		for len(s.beside) > 0 {
			do := s.beside[0]
			s.beside = s.beside[1:]
			do()
		}
	}
	return s.woken
}

// The room that a gang leaves rank by rank is one change: the first that waits is woken when the last rank has left.
func TestQueue_GangLeavesAsAWhole(t *testing.T) {
	f := newStill(t, 2)
	ends := f.runs("ends", "8", 0, 0, 1)
	f.asks(f.group("large", 2), "8")
	f.asks(f.group("small", 1), "8")
	f.leaves(ends[0])
	if got := f.pass(300 * time.Millisecond); len(got) > 0 {
		t.Errorf("%v are woken while a rank of the gang still runs", got)
	}
	f.leaves(ends[1])
	large := waiting.IDOf(types.NamespacedName{Namespace: "team", Name: "large"})
	if got := f.pass(50 * time.Millisecond); !slices.Equal(got, []contention.ID{large}) {
		t.Errorf("%v are woken when the last rank has left, want the large one", got)
	}
}

// A gang that loses a rank and runs on delays those that wait by a second.
func TestQueue_GangThatLosesARankDelaysOthersForASecond(t *testing.T) {
	f := newStill(t, 2)
	loses := f.runs("loses", "8", 0, 0, 1)
	f.asks(f.group("small", 1), "8")
	f.leaves(loses[0])
	if got := f.pass(900 * time.Millisecond); len(got) > 0 {
		t.Errorf("%v are woken at once", got)
	}
	if got := f.pass(200 * time.Millisecond); len(got) != 1 {
		t.Errorf("%v are woken after a second, want the small one", got)
	}
}
