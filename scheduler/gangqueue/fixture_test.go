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

// besideClock is a clock whose functions run in goroutines of their own, as those of a real one do. A FakeClock calls
// them while it holds its lock, and one that waits for the queue's lock would wait for an event that asks for the time.
type besideClock struct {
	*clocktesting.FakeClock

	running sync.WaitGroup
}

// AfterFunc starts the function once the clock has been stepped so far.
func (c *besideClock) AfterFunc(after time.Duration, do func()) clock.Timer {
	return c.FakeClock.AfterFunc(after, func() { c.running.Go(do) })
}
