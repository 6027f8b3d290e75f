package gangqueue_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/gangqueue"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// scheduler is the scheduler as the plugin sees it: its count of members and its queue.
type scheduler struct {
	fwk.Handle
	factory informers.SharedInformerFactory

	mu        sync.Mutex
	groups    map[string]*schedulingv1beta1.PodGroup
	members   map[string]map[types.UID]*corev1.Pod
	activated []string
	// moves returns the queue's effect on a pod that is activated, nil for none.
	moves func(*corev1.Pod)
}

func newScheduler() *scheduler {
	return &scheduler{
		factory: informers.NewSharedInformerFactory(fake.NewClientset(), 0),
		groups:  make(map[string]*schedulingv1beta1.PodGroup), members: make(map[string]map[types.UID]*corev1.Pod),
	}
}

func (*scheduler) ProfileName() string                                      { return "" }
func (s *scheduler) PodGroupManager() fwk.PodGroupManager                   { return lists{s} }
func (s *scheduler) SharedInformerFactory() informers.SharedInformerFactory { return s.factory }

func (s *scheduler) Activate(_ klog.Logger, pods map[string]*corev1.Pod) {
	for _, p := range pods {
		s.mu.Lock()
		s.activated = append(s.activated, p.Name)
		s.mu.Unlock()
		if s.moves != nil {
			s.moves(p)
		}
	}
}

func (s *scheduler) addGroup(g *schedulingv1beta1.PodGroup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.groups[g.Name] = g
}

func (s *scheduler) addMember(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := *p.Spec.SchedulingGroup.PodGroupName
	if s.members[name] == nil {
		s.members[name] = make(map[types.UID]*corev1.Pod)
	}
	s.members[name][p.UID] = p
}

type lists struct{ *scheduler }

func (l lists) PodGroups() fwk.PodGroupLister           { return groupList(l) }
func (l lists) PodGroupStates() fwk.PodGroupStateLister { return stateList(l) }

func (l lists) CompositePodGroupStates() fwk.CompositePodGroupStateLister { return nil }
func (l lists) CompositePodGroups() fwk.CompositePodGroupLister           { return nil }
func (l lists) BuildHierarchySnapshotFromPod(*corev1.Pod) (fwk.PodGroupManager, error) {
	return nil, errors.ErrUnsupported
}

func (l lists) GetRootKeyForGroup(key fwk.EntityKey) (fwk.EntityKey, bool, error) {
	return key, true, nil
}

type groupList struct{ *scheduler }

func (l groupList) Get(_, name string) (*schedulingv1beta1.PodGroup, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g, ok := l.groups[name]; ok {
		return g, nil
	}
	return nil, fmt.Errorf("no PodGroup %s", name)
}

type stateList struct{ *scheduler }

func (l stateList) Get(_, name string) (fwk.PodGroupState, error) {
	return state{scheduler: l.scheduler, name: name}, nil
}

type state struct {
	fwk.PodGroupState
	*scheduler
	name string
}

func (s state) AllPodsCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.members[s.name])
}

func (s state) AllPods() sets.Set[types.UID] {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sets.KeySet(s.members[s.name])
}

func (s state) UnscheduledPods() map[string]*corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]*corev1.Pod)
	for _, p := range s.members[s.name] {
		if p.Spec.NodeName == "" {
			out[p.Name] = p
		}
	}
	return out
}

func group(name string, minCount int32) *schedulingv1beta1.PodGroup {
	return &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name + "-uid")},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount},
		}},
	}
}

func member(group string, i int) *corev1.Pod {
	name := fmt.Sprintf("%s-%d", group, i)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec:       corev1.PodSpec{SchedulingGroup: &corev1.PodSchedulingGroup{PodGroupName: &group}},
	}
}

// queue is the part of the scheduling queue that opens gangs: it repeats the actions of the scheduler's event handlers,
// in their order, and holds the same pods.
type queue struct {
	t      *testing.T
	plugin *gangqueue.GangQueue
	s      *scheduler
	events map[fwk.EventResource]fwk.ClusterEventWithHint
	queued map[string]map[string]*corev1.Pod
	active map[string]int // gang → members in the active queue when it got there
	judged int
}

func newQueue(t *testing.T, plugin *gangqueue.GangQueue, s *scheduler) *queue {
	t.Helper()
	events, err := plugin.EventsToRegister(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	q := &queue{
		t: t, plugin: plugin, s: s, events: make(map[fwk.EventResource]fwk.ClusterEventWithHint),
		queued: make(map[string]map[string]*corev1.Pod), active: make(map[string]int),
	}
	for _, e := range events {
		q.events[e.Event.Resource] = e
	}
	return q
}

func (q *queue) pod(p *corev1.Pod) {
	q.s.addMember(p)
	name := *p.Spec.SchedulingGroup.PodGroupName
	if q.queued[name] == nil {
		q.queued[name] = make(map[string]*corev1.Pod)
		q.enter(name) // the first member makes the group's entity
	}
	q.queued[name][p.Name] = p
	q.event(fwk.UnscheduledPod, nil, p)
}

func (q *queue) group(old, g *schedulingv1beta1.PodGroup) {
	q.s.addGroup(g)
	if old == nil {
		q.event(fwk.PodGroup, nil, g)
	} else {
		q.event(fwk.PodGroup, old, g)
	}
}

func (q *queue) event(resource fwk.EventResource, old, obj any) {
	narrowed, err := q.events[resource].PreQueueingHintFn(klog.Background(), old, obj)
	if err != nil || narrowed.AllPods {
		q.t.Fatalf("an event was not narrowed: %v", err)
	}
	for _, named := range narrowed.Pods {
		for name, pods := range q.queued {
			if p := pods[named.Name]; p != nil && q.active[name] == 0 {
				q.judged++
				hint, err := q.events[resource].QueueingHintFn(klog.Background(), p, old, obj)
				if err != nil || hint != fwk.Queue {
					q.t.Errorf("the hint for %s is %v, %v", p.Name, hint, err)
				}
				q.enter(name)
			}
		}
	}
}

// enter tries to move a gang to the active queue.
func (q *queue) enter(name string) {
	for _, p := range q.queued[name] {
		if !q.plugin.PreEnqueue(q.t.Context(), p).IsSuccess() {
			return
		}
	}
	q.active[name] = len(q.queued[name])
}

func newPlugin(t *testing.T, s *scheduler) (*gangqueue.GangQueue, *clocktesting.FakeClock) {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	return newPluginWith(t, s, clock), clock
}

func newPluginWith(t *testing.T, s *scheduler, c clock.WithDelayedExecution) *gangqueue.GangQueue {
	t.Helper()
	plugin, err := gangqueue.NewWithClock(s, c, waiting.New(timing.With(c), contention.DefaultPolicy()))
	if err != nil {
		t.Fatal(err)
	}
	return plugin
}

// besideClock is a clock whose functions run in goroutines of their own, as those of a real one do. A FakeClock calls them while it holds its
// lock, and one that waits for the queue's lock would wait for an event that asks for the time.
type besideClock struct {
	*clocktesting.FakeClock

	running sync.WaitGroup
}

// AfterFunc starts the function once the clock has been stepped so far.
func (c *besideClock) AfterFunc(after time.Duration, do func()) clock.Timer {
	return c.FakeClock.AfterFunc(after, func() { c.running.Go(do) })
}

func TestGangQueue_GangEntersWhole(t *testing.T) {
	const size = 5
	for last := range size + 1 {
		t.Run(fmt.Sprintf("the PodGroup comes after %d members", last), func(t *testing.T) {
			s := newScheduler()
			plugin, _ := newPlugin(t, s)
			q := newQueue(t, plugin, s)
			for i := range size {
				if i == last {
					q.group(nil, group("g", size))
				}
				if q.active["g"] != 0 {
					t.Fatalf("the gang entered with %d members", q.active["g"])
				}
				q.pod(member("g", i))
			}
			if last == size {
				q.group(nil, group("g", size))
			}
			if q.active["g"] != size || q.judged != 1 {
				t.Errorf(
					"the gang entered with %d members after %d judgements, want %d after 1",
					q.active["g"],
					q.judged,
					size,
				)
			}
		})
	}
}

func TestGangQueue_LowerMinCountOpensTheGang(t *testing.T) {
	s := newScheduler()
	plugin, _ := newPlugin(t, s)
	q := newQueue(t, plugin, s)
	old := group("g", 3)
	q.group(nil, old)
	q.pod(member("g", 0))
	q.pod(member("g", 1))
	if q.active["g"] != 0 {
		t.Fatal("an incomplete gang entered")
	}
	q.group(old, group("g", 2))
	if q.active["g"] != 2 {
		t.Error("the gang did not enter when it became complete")
	}
}

func TestGangQueue_RecreatedPodGroupIsClosed(t *testing.T) {
	s := newScheduler()
	plugin, _ := newPlugin(t, s)
	q := newQueue(t, plugin, s)
	q.group(nil, group("g", 1))
	q.pod(member("g", 0))
	if status := plugin.PreEnqueue(t.Context(), member("g", 0)); !status.IsSuccess() {
		t.Fatalf("the open gang is gated: %v", status)
	}
	again := group("g", 1)
	again.UID = "another"
	s.addGroup(again)
	if plugin.PreEnqueue(t.Context(), member("g", 0)).IsSuccess() {
		t.Error("a PodGroup is open before its event")
	}
}

func TestGangQueue_OtherPodsPass(t *testing.T) {
	s := newScheduler()
	plugin, _ := newPlugin(t, s)
	basic := group("basic", 1)
	basic.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{
		Basic: &schedulingv1beta1.BasicSchedulingPolicy{},
	}
	s.addGroup(basic)
	for _, p := range []*corev1.Pod{{}, member("basic", 0)} {
		if status := plugin.PreEnqueue(t.Context(), p); !status.IsSuccess() {
			t.Errorf("pod %q is gated: %v", p.Name, status)
		}
	}
	if plugin.PreEnqueue(t.Context(), member("unknown", 0)).IsSuccess() {
		t.Error("a member of an unknown PodGroup passes")
	}
}

// After a restart bound members raise no event of ours: only the delayed look opens the gang.
func TestGangQueue_BoundMemberCompletesTheGang(t *testing.T) {
	s := newScheduler()
	plugin, clock := newPlugin(t, s)
	q := newQueue(t, plugin, s)
	q.group(nil, group("g", 2))
	q.pod(member("g", 0))
	bound := member("g", 1)
	bound.Spec.NodeName = "node"
	plugin.Recheck(bound) // ours sees it before the scheduler's own handler
	plugin.Recheck(bound)
	s.addMember(bound)
	clock.Step(2 * time.Second)
	for range 100 {
		if s.mu.Lock(); len(s.activated) > 0 {
			s.mu.Unlock()
			break
		}
		s.mu.Unlock()
		time.Sleep(time.Millisecond)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.activated) != 1 || s.activated[0] != "g-0" {
		t.Errorf("activated %v, want the waiting member once", s.activated)
	}
}

// The scheduler's handlers for pods and PodGroups, ours and the queue run in goroutines of their own.
func TestGangQueue_ConcurrentEvents(t *testing.T) {
	const gangs, size = 20, 50
	s := newScheduler()
	clock := &besideClock{FakeClock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	plugin := newPluginWith(t, s, clock)
	var q sync.Mutex // the queue's lock, under which the scheduler calls hints and PreEnqueue, and activates
	queues := make(map[string]*queue)
	for g := range gangs {
		queues[fmt.Sprint("g", g)] = newQueue(t, plugin, s)
	}
	s.moves = func(p *corev1.Pod) {
		q.Lock()
		defer q.Unlock()
		name := *p.Spec.SchedulingGroup.PodGroupName
		queues[name].enter(name)
	}
	var done sync.WaitGroup
	for name, queue := range queues {
		done.Go(func() {
			for i := range size {
				q.Lock()
				queue.pod(member(name, i))
				q.Unlock()
			}
		})
		done.Go(func() {
			q.Lock()
			defer q.Unlock()
			queue.group(nil, group(name, size))
		})
		done.Go(func() {
			bound := member(name, size)
			bound.Spec.NodeName = "node"
			plugin.Recheck(bound)
			clock.Step(time.Second)
		})
	}
	done.Wait()
	clock.running.Wait()
	for name, queue := range queues {
		if queue.active[name] < size-1 {
			t.Errorf("gang %s entered with %d of %d members", name, queue.active[name], size)
		}
	}
}

func BenchmarkAssemble(b *testing.B) {
	const size = 10_000
	for b.Loop() {
		s := newScheduler()
		plugin, err := gangqueue.NewWithClock(
			s,
			clocktesting.NewFakeClock(time.Unix(0, 0)),
			waiting.New(timing.With(clocktesting.NewFakeClock(time.Unix(0, 0))), contention.DefaultPolicy()),
		)
		if err != nil {
			b.Fatal(err)
		}
		events, err := plugin.EventsToRegister(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		s.addGroup(group("g", size))
		for i := range size {
			p := member("g", i)
			s.addMember(p)
			if _, err := events[0].PreQueueingHintFn(klog.Background(), nil, p); err != nil {
				b.Fatal(err)
			}
		}
	}
}
