package gangqueue

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// wake brings an entity back into the scheduling queue.
func (q *GangQueue) wake(id contention.ID) {
	key, single := waiting.NameOf(id)
	if !single {
		q.activate(key)
		return
	}
	if pod, err := q.pods.Pods(key.Namespace).Get(key.Name); err == nil && pod.Spec.NodeName == "" {
		q.handle.Activate(klog.Background(), map[string]*corev1.Pod{key.String(): pod})
	}
}

// activate brings a gang back into the scheduling queue. One that is not complete any more leaves the waiting queue: it
// cannot be evaluated, and must hold up no other.
func (q *GangQueue) activate(key types.NamespacedName) {
	member := q.anyWaiting(key)
	group, err := q.handle.PodGroupManager().PodGroups().Get(key.Namespace, key.Name)
	if member == nil || err != nil || !q.complete(group) {
		q.queue.Remove(waiting.IDOf(key))
		return
	}
	q.handle.Activate(klog.Background(), map[string]*corev1.Pod{member.Name: member})
}

// podGone reports freed room to the queue.
func (q *GangQueue) podGone(obj any) {
	if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj
		// The pod may have been bound and ended since it was last seen, so the node that has room now is unknown.
		q.queue.Settling()
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		q.track(pod, false, false)
		q.leaves(pod)
		if pod.Spec.NodeName != "" {
			q.left(pod)
		}
		if _, member := snapshot.GroupOf(pod); !member && pod.Spec.NodeName == "" {
			q.queue.PodGone(waiting.IDOfPod(pod))
		}
		if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil {
			q.revise(pod)
		}
	}
}

// podChanged reports to the queue a pod that ended: its room is free before the pod is deleted.
func (q *GangQueue) podChanged(old, obj any) {
	before, ok := old.(*corev1.Pod)
	after, same := obj.(*corev1.Pod)
	if same {
		q.follow(after)
	}
	if ok && same && before.Spec.NodeName == "" && after.Spec.NodeName != "" {
		q.leaves(after)
		q.taken(after)
	}
	if ok && same && before.DeletionTimestamp == nil && after.DeletionTimestamp != nil {
		q.leavesSoon(after)
		q.revise(after)
	}
	if ok && same && after.Spec.NodeName != "" && !snapshot.Ended(before) && snapshot.Ended(after) {
		q.left(after)
	}
}

// taken reports to the queue a pod that another scheduler has bound: it takes capacity that may be leased.
func (q *GangQueue) taken(pod *corev1.Pod) {
	if pod.Spec.SchedulerName != q.profile {
		q.queue.Taken(pod.Spec.NodeName)
	}
}

// groupChanged reports to the queue changed gangs: a running gang with another expected end, a gang with another sweep
// or another limit of its sweep, and a gang whose job has ended.
func (q *GangQueue) groupChanged(old, obj any) {
	before, ok := old.(*schedulingv1beta1.PodGroup)
	after, same := obj.(*schedulingv1beta1.PodGroup)
	if ok && same && !snapshot.ExpectedEnd(before).Equal(snapshot.ExpectedEnd(after)) {
		q.queue.EndChanged(types.NamespacedName{Namespace: after.Namespace, Name: after.Name})
	}
	if ok && same && snapshot.SweepOf(before) != snapshot.SweepOf(after) {
		q.queue.SweepChanged(
			types.NamespacedName{
				Namespace: after.Namespace,
				Name:      after.Name,
			},
			snapshot.SweepOf(before),
			snapshot.SweepOf(after),
		)
	}
	if ok && same && !snapshot.JobEnded(before) && snapshot.JobEnded(after) {
		q.queue.NoReturn(types.NamespacedName{Namespace: after.Namespace, Name: after.Name})
	}
}

// revise checks a gang that lost a member after the scheduler's handlers have surely seen the loss: without a member
// that it needs, or without any waiting member, it leaves the waiting queue. Otherwise it returns to the scheduling
// queue: a member may have been created again, and held out while the one that it replaces was still counted. One check
// at a time per gang is enough.
func (q *GangQueue) revise(pod *corev1.Pod) {
	key, ok := snapshot.GroupOf(pod)
	if !ok || pod.Spec.SchedulerName != q.profile { // gangs of other schedulers are theirs to explain
		return
	}
	q.gangs.mu.Lock()
	pending := q.gangs.revised.Has(key)
	q.gangs.revised.Insert(key)
	q.gangs.mu.Unlock()
	if pending {
		return
	}
	q.settled(func() {
		q.gangs.mu.Lock()
		q.gangs.revised.Delete(key)
		q.gangs.mu.Unlock()
		q.activate(key)
		q.watchMembers(key)
	})
}

// nodeChanged reports to the queue a node that may take pods that it did not take before, or that was cordoned.
// Heartbeats change nothing that matters.
func (q *GangQueue) nodeChanged(old, obj any) {
	before, ok := old.(*corev1.Node)
	after, same := obj.(*corev1.Node)
	if !ok || !same {
		return
	}
	sameLabels := maps.Equal(before.Labels, after.Labels) || !q.queue.Matters(before, after)
	same = sameLabels && nodehealth.SameConditions(before, after) &&
		sameMark(before, after) &&
		apiequality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) &&
		apiequality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable)
	switch cordoned := after.Spec.Unschedulable; {
	case !same, before.Spec.Unschedulable && !cordoned:
		q.queue.Changed()
	case cordoned && !before.Spec.Unschedulable:
		q.queue.Taken(after.Name)
	}
}

// sameMark reports whether administrators have written the same on two versions of a node.
func sameMark(a, b *corev1.Node) bool {
	was, _ := nodehealth.Marked(a)
	is, _ := nodehealth.Marked(b)
	return was == is
}
