package gangqueue

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// Whenever a pod is bound or deleted, the scheduling queue looks at every pod that waits, those of parked gangs included:
// with 2,000 parked gangs of 64 that is most of what the scheduler does. A pre-queueing hint names those for which the
// event can matter, for all plugins. They must all be among them, or they miss what they wait for; so they are collected
// where the queue itself asks about each pod that enters it, PreEnqueue.
type candidates struct {
	// singles are the pods in no gang; another one of a name may come before we hear that the last is gone.
	singles map[types.NamespacedName]types.UID
	// gangs are those that were let in, by one of their members.
	gangs map[types.NamespacedName]types.NamespacedName
}

func newCandidates() candidates {
	return candidates{
		singles: make(map[types.NamespacedName]types.UID), gangs: make(map[types.NamespacedName]types.NamespacedName),
	}
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// enters notes a pod that enters the queue.
func (q *GangQueue) enters(pod *corev1.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if key, ok := snapshot.GroupOf(pod); ok {
		q.waiting.gangs[key] = nameOf(pod)
	} else {
		q.waiting.singles[nameOf(pod)] = pod.UID
	}
}

// leaves drops a pod that is bound or deleted. Its gang stays until it is deleted: others of it may wait.
func (q *GangQueue) leaves(pod *corev1.Pod) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting.singles[nameOf(pod)] == pod.UID {
		delete(q.waiting.singles, nameOf(pod))
	}
}

// moved names who may care that a pod was bound or deleted: all but those of parked gangs, which the lot wakes, and of
// gangs that were never let in.
func (q *GangQueue) moved(klog.Logger, any, any) (fwk.PreQueueingHintResult, error) {
	q.mu.Lock()
	pods := make([]types.NamespacedName, 0, len(q.waiting.singles)+len(q.waiting.gangs))
	for pod := range q.waiting.singles {
		pods = append(pods, pod)
	}
	gangs := make(map[types.NamespacedName]types.NamespacedName)
	for key, member := range q.waiting.gangs {
		if uid, ok := q.open[key]; !ok || !q.lot.Holds(key, uid) {
			gangs[key] = member
		}
	}
	q.mu.Unlock()
	for key, member := range gangs {
		if pod, ok := q.member(key, member); ok {
			pods = append(pods, pod)
		}
	}
	return fwk.PreQueueingHintResult{Pods: pods}, nil
}

// member is the member that is remembered or, if it is gone or has its node, another one that waits; false if none does.
func (q *GangQueue) member(key, known types.NamespacedName) (types.NamespacedName, bool) {
	pod, err := q.pods.Pods(known.Namespace).Get(known.Name)
	if err == nil && pod.Spec.NodeName == "" {
		return known, true
	}
	other := q.anyWaiting(key)
	q.mu.Lock()
	defer q.mu.Unlock()
	if other == nil {
		delete(q.waiting.gangs, key) // whoever comes passes PreEnqueue
		return known, false
	}
	q.waiting.gangs[key] = nameOf(other)
	return nameOf(other), true
}

// freed is the hint for those that this plugin keeps out: single pods that its Filter kept off what is held or reserved are asked
// again, gangs wait for other events.
func freed(_ klog.Logger, pod *corev1.Pod, _, _ any) (fwk.QueueingHint, error) {
	if _, member := snapshot.GroupOf(pod); member {
		return fwk.QueueSkip, nil
	}
	return fwk.Queue, nil
}
