package gangqueue

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/scheduler/finished"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

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
		q.queue.Release(waiting.IDOf(key)) // with one more member it asks another question
		return one(pod), nil
	}
	// A PodGroup is updated all the time; only an update that can complete the gang, or that changes its request, is
	// worth a look at its members.
	before, ok := old.(*schedulingv1beta1.PodGroup)
	asksElse := ok && (minCount(before) != minCount(group) || !maps.Equal(before.Annotations, group.Annotations) ||
		!ptr.Equal(before.Spec.Priority, group.Spec.Priority))
	if !fresh && !asksElse {
		return fwk.PreQueueingHintResult{}, nil
	}
	q.queue.Release(waiting.IDOf(key))
	if pod := q.anyWaiting(key); pod != nil {
		return one(pod), nil
	}
	return fwk.PreQueueingHintResult{}, nil
}

func one(pod *corev1.Pod) fwk.PreQueueingHintResult {
	return fwk.PreQueueingHintResult{Pods: []types.NamespacedName{{Namespace: pod.Namespace, Name: pod.Name}}}
}

// hint returns whether the event admits the pod's gang.
func (q *GangQueue) hint(_ klog.Logger, pod *corev1.Pod, _, obj any) (fwk.QueueingHint, error) {
	mine, ok := snapshot.GroupOf(pod)
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
	if err != nil {
		return nil, false
	}
	if !q.complete(group) {
		q.noteFinished(group)
		return nil, false
	}
	q.gangs.mu.Lock()
	defer q.gangs.mu.Unlock()
	fresh := q.gangs.open[key] != group.UID || group.UID == ""
	q.gangs.open[key] = group.UID
	return group, fresh
}

func (q *GangQueue) isOpen(key types.NamespacedName, uid types.UID) bool {
	q.gangs.mu.Lock()
	defer q.gangs.mu.Unlock()
	opened, ok := q.gangs.open[key]
	return ok && opened == uid
}

// complete reports whether as many members as have to start together are known to the scheduler, without those that are
// being deleted.
func (q *GangQueue) complete(group *schedulingv1beta1.PodGroup) bool {
	if group.Spec.SchedulingPolicy.Gang == nil {
		return true
	}
	state, err := q.handle.PodGroupManager().PodGroupStates().Get(group.Namespace, group.Name)
	leave := q.leavers(types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
	return err == nil && state.AllPodsCount()-leave >= q.wanted(group) &&
		q.wantedNote(group, state) == finished.On(group)
}

// minCount returns the number of members that have to start together.
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

// added rechecks the gang of a pod that is bound when it is first seen. Whatever scheduler the pod names, ours has not
// bound it.
func (q *GangQueue) added(obj any) {
	if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		q.follow(pod)
		q.Recheck(pod)
		q.queue.Taken(pod.Spec.NodeName)
	}
}

// Recheck checks the gang of a bound pod after the scheduler's handlers have surely seen that pod, and activates the
// gang if it is complete. One pending check per gang is enough: it reads the state at its time.
func (q *GangQueue) Recheck(pod *corev1.Pod) {
	key, ok := snapshot.GroupOf(pod)
	if !ok {
		return
	}
	q.gangs.mu.Lock()
	pending := q.gangs.checking[key]
	q.gangs.checking[key] = true
	q.gangs.mu.Unlock()
	if !pending { // not under our lock: a clock may call back while it holds its own
		q.settled(func() { q.recheck(key) })
	}
}

func (q *GangQueue) recheck(key types.NamespacedName) {
	q.gangs.mu.Lock()
	delete(q.gangs.checking, key)
	q.gangs.mu.Unlock()
	if _, fresh := q.openIfComplete(key); !fresh {
		return
	}
	q.activate(key)
}

// forget drops the state of a deleted group, but not that of a later one with the same name: our handler may learn of
// the deletion late.
func (q *GangQueue) forget(obj any) {
	group, ok := snapshot.ObjectOf[*schedulingv1beta1.PodGroup](obj)
	if !ok {
		return
	}
	key, _ := keyOf(group)
	q.gangs.mu.Lock()
	defer q.gangs.mu.Unlock()
	delete(q.gangs.succeeded, key)
	delete(q.gangs.enough, key)
	if q.gangs.open[key] == group.UID {
		delete(q.gangs.open, key)
		delete(q.gangs.events.gangs, key)
	}
}

// keyOf is the PodGroup that an event is about.
func keyOf(obj any) (types.NamespacedName, bool) {
	switch o := obj.(type) {
	case *corev1.Pod:
		return snapshot.GroupOf(o)
	case *schedulingv1beta1.PodGroup:
		return types.NamespacedName{Namespace: o.Namespace, Name: o.Name}, true
	}
	return types.NamespacedName{}, false
}
