package gangqueue

import (
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// candidates are the pods for which the scheduling queue has to evaluate an event. Whenever a pod is bound or deleted,
// the queue looks at every pod that waits, those of parked gangs included: with 2,000 parked gangs of 64 that is most
// of the scheduler's work. A pre-queueing hint names those for which the event can matter, for all plugins: a pod that
// is not among them misses the event that it waits for. Gangs are collected where the queue itself asks about each pod
// that enters it, PreEnqueue. Of the other pods only those that were refused wait for an event: naming the pods in the
// active queue, too, costs bound × waiting.
type candidates struct {
	// refused are the pods in no gang that were not scheduled when they were tried last, by UID: another pod of a name
	// may be created before the deletion of the last is seen.
	refused map[types.NamespacedName]types.UID
	// gangs are the admitted ones, by one of their members.
	gangs map[types.NamespacedName]types.NamespacedName
}

func newCandidates() candidates {
	return candidates{
		refused: make(map[types.NamespacedName]types.UID), gangs: make(map[types.NamespacedName]types.NamespacedName),
	}
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// enters notes the gang of a pod that enters the queue.
func (q *GangQueue) enters(pod *corev1.Pod) {
	key, ok := snapshot.GroupOf(pod)
	if !ok {
		return
	}
	q.gangs.mu.Lock()
	defer q.gangs.mu.Unlock()
	q.gangs.events.gangs[key] = nameOf(pod)
}

// PostFilter notes a pod that was refused, before the queue gets it back. It helps no pod.
func (q *GangQueue) PostFilter(
	_ context.Context, _ fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader,
) (*fwk.PostFilterResult, *fwk.Status) {
	q.refuse(pod)
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// Reserve reserves nothing.
func (*GangQueue) Reserve(context.Context, fwk.CycleState, *corev1.Pod, string) *fwk.Status {
	return nil
}

// Unreserve notes a pod that a later step sent back.
func (q *GangQueue) Unreserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, _ string) {
	if !state.IsPodGroupSchedulingCycle() {
		q.refuse(pod)
	}
}

func (q *GangQueue) refuse(pod *corev1.Pod) {
	if _, member := snapshot.GroupOf(pod); member {
		return
	}
	q.gangs.mu.Lock()
	defer q.gangs.mu.Unlock()
	// The informer's store drops a pod before it calls its handlers: a pod that is still in the store leaves with that
	// call.
	if now, err := q.pods.Pods(pod.Namespace).Get(pod.Name); err != nil || now.UID != pod.UID {
		return
	}
	q.gangs.events.refused[nameOf(pod)] = pod.UID
}

// leaves drops a pod that is bound or deleted. Its gang stays until it is deleted: others of it may wait.
func (q *GangQueue) leaves(pod *corev1.Pod) {
	q.gangs.mu.Lock()
	defer q.gangs.mu.Unlock()
	if q.gangs.events.refused[nameOf(pod)] == pod.UID {
		delete(q.gangs.events.refused, nameOf(pod))
	}
}

// moved names the pods that a bound or deleted pod may concern: those that were refused, and those of admitted gangs
// that are not parked. The waiting queue wakes parked gangs.
func (q *GangQueue) moved(klog.Logger, any, any) (fwk.PreQueueingHintResult, error) {
	q.gangs.mu.Lock()
	pods := make([]types.NamespacedName, 0, len(q.gangs.events.refused)+len(q.gangs.events.gangs))
	refused := slices.Collect(maps.Keys(q.gangs.events.refused))
	gangs := make([][2]types.NamespacedName, 0, len(q.gangs.events.gangs))
	for key, member := range q.gangs.events.gangs {
		gangs = append(gangs, [2]types.NamespacedName{key, member})
	}
	q.gangs.mu.Unlock()
	for _, pod := range refused {
		if !q.queue.Holds(waiting.IDOfSingle(pod)) {
			pods = append(pods, pod)
		}
	}
	for _, of := range gangs {
		key, member := of[0], of[1]
		if q.queue.Holds(waiting.IDOf(key)) {
			continue // the waiting queue wakes it
		}
		if pod, ok := q.member(key, member); ok {
			pods = append(pods, pod)
		}
	}
	return fwk.PreQueueingHintResult{Pods: pods}, nil
}

// member returns the remembered member or, if that is deleted or bound, another waiting one; false if none waits.
func (q *GangQueue) member(key, known types.NamespacedName) (types.NamespacedName, bool) {
	pod, err := q.pods.Pods(known.Namespace).Get(known.Name)
	if err == nil && pod.Spec.NodeName == "" {
		return known, true
	}
	other := q.anyWaiting(key)
	q.gangs.mu.Lock()
	defer q.gangs.mu.Unlock()
	if other == nil {
		delete(q.gangs.events.gangs, key) // a later member passes PreEnqueue
		return known, false
	}
	q.gangs.events.gangs[key] = nameOf(other)
	return nameOf(other), true
}

// freed is the hint for pods that this plugin's Filter rejected for held or reserved room: they are tried again when a
// pod has left.
func freed(_ klog.Logger, pod *corev1.Pod, _, _ any) (fwk.QueueingHint, error) {
	if _, member := snapshot.GroupOf(pod); member {
		return fwk.QueueSkip, nil // gangs wait for other events
	}
	return fwk.Queue, nil
}

// bound is the hint for a pod that was bound: it frees nothing. The event is registered for its pre-queueing hint,
// which narrows it for all plugins.
func bound(klog.Logger, *corev1.Pod, any, any) (fwk.QueueingHint, error) { return fwk.QueueSkip, nil }
