// Package gangqueue is the scheduler plugin that decides the order of the queue and lets a gang into it whole.
//
// A gang is opened once, by the event that completes it, and stays open as long as its PodGroup exists. Both kinds of
// completing event (a member or the PodGroup itself is added) are judged in the scheduler's own event handler, after
// that handler has put the object into the queue and in constant time, through a pre-queueing hint. So there is no
// order of events in which the last member is missing from the queue when the gang opens, or in which nobody opens it:
//
//   - the scheduler adds a member to its count, then to the queue, then asks the hint about the event;
//   - whichever object comes last, its event finds all others in the count and in the queue;
//   - until then PreEnqueue keeps the gang gated, so that adding a member costs no pass over the others.
//
// Members that are bound before the scheduler sees them (after its restart) raise no such event: see Recheck.
package gangqueue

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/clock"
)

// Name is the plugin's name in the scheduler's configuration.
const Name = "GangQueue"

// settle is how long Recheck waits for the scheduler's own handlers to see what ours saw.
const settle = time.Second

// GangQueue orders the queue and gates incomplete gangs.
type GangQueue struct {
	handle fwk.Handle
	clock  clock.WithDelayedExecution

	mu sync.Mutex
	// open holds the gangs that were complete once, by PodGroup.
	open map[types.NamespacedName]types.UID
	// checking holds the gangs for which a recheck is under way.
	checking map[types.NamespacedName]bool
}

var (
	_ fwk.QueueSortPlugin   = (*GangQueue)(nil)
	_ fwk.PreEnqueuePlugin  = (*GangQueue)(nil)
	_ fwk.EnqueueExtensions = (*GangQueue)(nil)
)

// New makes the plugin with the machine's clock.
func New(_ context.Context, _ runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
	return NewWithClock(handle, clock.RealClock{})
}

// NewWithClock makes the plugin.
func NewWithClock(handle fwk.Handle, c clock.WithDelayedExecution) (*GangQueue, error) {
	q := &GangQueue{
		handle: handle, clock: c,
		open:     make(map[types.NamespacedName]types.UID),
		checking: make(map[types.NamespacedName]bool),
	}
	factory := handle.SharedInformerFactory()
	_, err := factory.Scheduling().V1beta1().PodGroups().Informer().AddEventHandler(
		cache.ResourceEventHandlerFuncs{DeleteFunc: q.forget})
	if err != nil {
		return nil, fmt.Errorf("watching PodGroups: %w", err)
	}
	_, err = factory.Core().
		V1().
		Pods().
		Informer().
		AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
			if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
				q.Recheck(pod)
			}
		}})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	return q, nil
}

// Name returns the plugin's name.
func (*GangQueue) Name() string { return Name }

// PreEnqueue gates the members of a gang that was never complete, or is not any more.
func (q *GangQueue) PreEnqueue(_ context.Context, pod *corev1.Pod) *fwk.Status {
	key, ok := gangOf(pod)
	if !ok {
		return nil
	}
	group, err := q.handle.PodGroupManager().PodGroups().Get(key.Namespace, key.Name)
	if err != nil {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "waiting for PodGroup "+key.Name)
	}
	if group.Spec.SchedulingPolicy.Gang == nil || (q.isOpen(key, group.UID) && q.complete(group)) {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "waiting for the other members of gang "+key.Name)
}

// EventsToRegister registers what completes a gang.
func (q *GangQueue) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	members := fwk.ClusterEvent{Resource: fwk.UnscheduledPod, ActionType: fwk.Add}
	groups := fwk.ClusterEvent{Resource: fwk.PodGroup, ActionType: fwk.Add | fwk.Update}
	return []fwk.ClusterEventWithHint{
		{Event: members, PreQueueingHintFn: q.narrow, QueueingHintFn: q.hint},
		{Event: groups, PreQueueingHintFn: q.narrow, QueueingHintFn: q.hint},
	}, nil
}

// narrow answers an event in constant time: nothing to do, or one member of the gang that is complete now.
func (q *GangQueue) narrow(_ klog.Logger, old, obj any) (fwk.PreQueueingHintResult, error) {
	key, ok := keyOf(obj)
	if !ok {
		return fwk.PreQueueingHintResult{}, nil
	}
	group, fresh := q.openIfComplete(key)
	if group == nil {
		return fwk.PreQueueingHintResult{}, nil
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		return one(pod), nil
	}
	// A PodGroup is updated all the time; only an update that can complete the gang is worth a look at its members.
	if before, ok := old.(*schedulingv1beta1.PodGroup); !fresh && (!ok || minCount(before) == minCount(group)) {
		return fwk.PreQueueingHintResult{}, nil
	}
	if pod := q.anyWaiting(key); pod != nil {
		return one(pod), nil
	}
	return fwk.PreQueueingHintResult{}, nil
}

func one(pod *corev1.Pod) fwk.PreQueueingHintResult {
	return fwk.PreQueueingHintResult{Pods: []types.NamespacedName{{Namespace: pod.Namespace, Name: pod.Name}}}
}

// hint says whether the event let the pod's gang in.
func (q *GangQueue) hint(_ klog.Logger, pod *corev1.Pod, _, obj any) (fwk.QueueingHint, error) {
	mine, ok := gangOf(pod)
	theirs, same := keyOf(obj)
	if !ok || !same || mine != theirs {
		return fwk.QueueSkip, nil
	}
	if group, _ := q.openIfComplete(mine); group == nil {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}

// openIfComplete opens the gang if all needed members are known. It returns the PodGroup of an open gang, else nil, and
// whether this call opened it.
func (q *GangQueue) openIfComplete(key types.NamespacedName) (*schedulingv1beta1.PodGroup, bool) {
	group, err := q.handle.PodGroupManager().PodGroups().Get(key.Namespace, key.Name)
	if err != nil || !q.complete(group) {
		return nil, false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	fresh := q.open[key] != group.UID || group.UID == ""
	q.open[key] = group.UID
	return group, fresh
}

func (q *GangQueue) isOpen(key types.NamespacedName, uid types.UID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	opened, ok := q.open[key]
	return ok && opened == uid
}

// complete reports whether as many members as have to start together are known to the scheduler.
func (q *GangQueue) complete(group *schedulingv1beta1.PodGroup) bool {
	if group.Spec.SchedulingPolicy.Gang == nil {
		return true
	}
	state, err := q.handle.PodGroupManager().PodGroupStates().Get(group.Namespace, group.Name)
	return err == nil && state.AllPodsCount() >= minCount(group)
}

// minCount is how many members have to start together.
func minCount(group *schedulingv1beta1.PodGroup) int {
	if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
		return int(gang.MinCount)
	}
	return 0
}

// anyWaiting is one member of the gang that has no node, nil if there is none.
func (q *GangQueue) anyWaiting(key types.NamespacedName) *corev1.Pod {
	state, err := q.handle.PodGroupManager().PodGroupStates().Get(key.Namespace, key.Name)
	if err != nil {
		return nil
	}
	for _, pod := range state.UnscheduledPods() {
		return pod
	}
	return nil
}

// Recheck looks at the gang of a bound pod once the scheduler's handlers have surely seen that pod, and activates the
// gang if it is complete. One check at a time per gang is enough: it looks at what is known then.
func (q *GangQueue) Recheck(pod *corev1.Pod) {
	key, ok := gangOf(pod)
	if !ok {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.checking[key] {
		return
	}
	q.checking[key] = true
	q.clock.AfterFunc(settle, func() { q.recheck(key) })
}

func (q *GangQueue) recheck(key types.NamespacedName) {
	q.mu.Lock()
	delete(q.checking, key)
	q.mu.Unlock()
	if _, fresh := q.openIfComplete(key); !fresh {
		return
	}
	if waiting := q.anyWaiting(key); waiting != nil {
		q.handle.Activate(klog.Background(), map[string]*corev1.Pod{waiting.Name: waiting})
	}
}

func (q *GangQueue) forget(obj any) {
	key, err := cache.DeletionHandlingObjectToName(obj)
	if err != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.open, types.NamespacedName{Namespace: key.Namespace, Name: key.Name})
}

// gangOf is the PodGroup that the pod belongs to.
func gangOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return types.NamespacedName{Namespace: pod.Namespace, Name: *g.PodGroupName}, true
	}
	return types.NamespacedName{}, false
}

// keyOf is the PodGroup that an event is about.
func keyOf(obj any) (types.NamespacedName, bool) {
	switch o := obj.(type) {
	case *corev1.Pod:
		return gangOf(o)
	case *schedulingv1beta1.PodGroup:
		return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, true
	}
	return types.NamespacedName{}, false
}
