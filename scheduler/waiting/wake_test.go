package waiting_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// scheduler is a queue without leases, its fleet of one node that an endless pod fills, a clock that is moved by hand,
// and the entities that were woken.
type scheduler struct {
	*waiting.Queue
	reader *waiting.Reader
	node   *framework.NodeInfo
	clock  *clocktesting.FakeClock
	beside []func()
	woken  []string
}

func newScheduler(t *testing.T) *scheduler {
	t.Helper()
	has := corev1.ResourceList{gpu: resource.MustParse("8"), corev1.ResourcePods: resource.MustParse("110")}
	s := &scheduler{
		node: framework.NewNodeInfo(), clock: clocktesting.NewFakeClock(time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)),
	}
	s.node.SetNode(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{corev1.LabelHostname: "n"}},
		Status:     corev1.NodeStatus{Capacity: has, Allocatable: has},
	})
	s.node.AddPod(podOf("filler", 8))
	policy := contention.DefaultPolicy()
	policy.MaxLeases = 0
	s.Queue = waiting.New(timing.Timing{
		Clock: s.clock, Beside: func(do func()) { s.beside = append(s.beside, do) }, Gather: 50 * time.Millisecond,
	}, policy)
	s.Wakes(func(id contention.ID) {
		name, _ := waiting.NameOf(id)
		s.woken = append(s.woken, name.Name)
	})
	s.reader = &waiting.Reader{
		Indices: snapshot.NewIndices(nil, nodehealth.Rules{}), Accelerators: []corev1.ResourceName{gpu},
		Groups: func() fwk.PodGroupLister { return none{} },
	}
	return s
}

// none is a lister without PodGroups.
type none struct{}

func (none) Get(_, name string) (*schedulingv1beta1.PodGroup, error) {
	return nil, apierrors.NewNotFound(schedulingv1beta1.Resource("podgroups"), name)
}

func podOf(name string, gpus int64) *corev1.Pod {
	asks := corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: asks}},
		}},
	}
}

// turn evaluates a gang of one pod that has waited for so many hours.
func (s *scheduler) turn(t *testing.T, name string, gpus int64, hours int) waiting.Outcome {
	t.Helper()
	return s.Turn(s.question(t, name, gpus, hours))
}

func (s *scheduler) question(t *testing.T, name string, gpus int64, hours int) *waiting.Question {
	t.Helper()
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name,
			CreationTimestamp: metav1.NewTime(s.clock.Now().Add(-time.Duration(hours) * time.Hour)),
		},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1},
		}},
	}
	p := podOf(name+"-0", gpus)
	p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &name}
	x, err := s.reader.Read(t.Context(), waiting.Asked{
		Group: group, Waiting: []*corev1.Pod{p}, Nodes: []fwk.NodeInfo{s.node}, Now: s.clock.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// keeps reports whether a gang has to stay out of the scheduling queue.
func (s *scheduler) keeps(name string) bool {
	return s.Gates(
		&schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}},
		podOf(name, 0),
	)
}

// follows returns which gang is evaluated next in the cycle of another one, "" for none.
func (s *scheduler) follows() string {
	next, _ := s.Following(nil)
	name, _ := waiting.NameOf(next)
	return name.Name
}

// pass lets time pass, and returns which entities were woken, in order.
func (s *scheduler) pass(d time.Duration) []string {
	s.woken = nil
	s.clock.Step(d)
	for len(s.beside) > 0 {
		do := s.beside[0]
		s.beside = s.beside[1:]
		do()
	}
	return s.woken
}

func id(name string) contention.ID {
	return waiting.IDOf(types.NamespacedName{Namespace: "ns", Name: name})
}

// Many nodes become free one by one: that is one change. The first is woken, and the first of each other question is
// evaluated in its cycle. If nothing is heard of the first, it is woken once more, with the next.
func TestQueue_ChangeWakesTheFirst(t *testing.T) {
	s := newScheduler(t)
	s.turn(t, "large-new", 4, 1)
	s.turn(t, "large-old", 4, 3)
	s.turn(t, "small", 2, 2)
	if got := s.pass(time.Minute); got != nil {
		t.Errorf("%v are woken although nothing changed", got)
	}
	for _, name := range []string{"large-new", "large-old", "small"} {
		if !s.keeps(name) {
			t.Errorf("%s is not kept out of the scheduling queue", name)
		}
	}
	s.Changed()
	s.Changed()
	if got := s.pass(60 * time.Millisecond); !slices.Equal(got, []string{"large-old"}) {
		t.Errorf("%v are woken", got)
	}
	if s.keeps("large-old") || !s.keeps("large-new") || !s.keeps("small") {
		t.Error("the wrong one is kept out")
	}
	if got := s.follows(); got != "" {
		t.Errorf("%s is evaluated before the first", got)
	}
	s.turn(t, "large-old", 4, 3) // it does not fit
	if got := s.follows(); got != "small" {
		t.Errorf("%q is evaluated after the first", got)
	}
	if _, waits := s.Consider(s.question(t, "small", 2, 2)); !waits {
		t.Error("the small one has a cycle of its own although it does not fit")
	}
	if got := s.follows(); got != "" {
		t.Errorf("%s is evaluated although one that asks the same does not fit", got)
	}
	s.Changed()
	if got := s.pass(60 * time.Millisecond); !slices.Equal(got, []string{"large-old"}) {
		t.Errorf("%v are woken by the next change", got)
	}
	if got := s.pass(2 * time.Second); !slices.Equal(got, []string{"large-old", "small"}) {
		t.Errorf("%v are woken when nothing is heard of the first", got)
	}
}

func TestQueue_WakesInTheOrderOfTheQueue(t *testing.T) {
	s := newScheduler(t)
	var want, got []string
	for i := range 7 {
		name := fmt.Sprint("gang-", i)
		s.turn(t, name, int64(i+1), 20-i)
		want = append(want, name)
	}
	s.pass(time.Minute)
	s.Changed()
	got = s.pass(60 * time.Millisecond)
	s.turn(t, got[0], 1, 20)
	for i := 1; i < 7; i++ {
		name := s.follows()
		got = append(got, name)
		s.Consider(s.question(t, name, int64(i+1), 20-i))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v are evaluated, want %v", got, want)
	}
}

// An entity that is tried while changes are gathered is deferred until the earlier ones are evaluated, except for one
// that was woken and does not return.
func TestQueue_DefersToEarlierCandidates(t *testing.T) {
	s := newScheduler(t)
	s.turn(t, "old", 2, 2)
	s.pass(time.Minute)
	if s.turn(t, "new", 1, 1).Deferred {
		t.Error("it is deferred although nothing changed")
	}
	s.pass(time.Minute)
	s.Changed()
	if !s.turn(t, "new", 1, 1).Deferred {
		t.Error("it is evaluated before one that waits longer")
	}
	if s.turn(t, "oldest", 3, 3).Deferred {
		t.Error("the first is deferred")
	}
	s.pass(60 * time.Millisecond)
	s.pass(2 * time.Second)
	if s.turn(t, "new", 1, 1).Deferred {
		t.Error("it is deferred for one that was woken and did not come")
	}
}

// Gangs that ask the same stand in one class, whether a node was away when they were evaluated or not.
func TestQueue_TurnAsksTheSameWhileANodeIsAway(t *testing.T) {
	s := newScheduler(t)
	s.turn(t, "first", 8, 2)
	node := s.node.Node()
	cordoned := node.DeepCopy()
	cordoned.Spec.Unschedulable = true
	s.node.SetNode(cordoned)
	s.Node(cordoned)
	s.turn(t, "second", 8, 1)
	s.node.SetNode(node)
	s.Node(node)
	s.Again()
	s.clock.Step(2 * time.Second)
	s.turn(t, "first", 8, 2)
	if next, more := s.Next(); more {
		t.Errorf("%s is evaluated after the first of its class did not fit", next)
	}
}
