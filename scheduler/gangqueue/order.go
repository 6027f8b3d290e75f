package gangqueue

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// The contents of the queue's concrete entities: a group its PodGroup, a single pod itself.
type (
	groupEntity interface {
		GetPodGroup() *schedulingv1beta1.PodGroup
	}
	podEntity interface{ GetPodInfo() fwk.PodInfo }
)

// Less puts the higher priority first, then the earlier due time, then the name. It ignores the queue's own timestamp,
// which every attempt renews.
func (q *GangQueue) Less(a, b fwk.QueuedEntityInfo) bool {
	oa, ob := objectOf(a), objectOf(b)
	if oa == nil || ob == nil {
		return ob == nil && oa != nil
	}
	return q.orderOf(oa, a.GetPriority()).Compare(q.orderOf(ob, b.GetPriority())) < 0
}

// orderOf returns the place in the queue of an object.
func (q *GangQueue) orderOf(o metav1.Object, priority int32) contention.Order {
	id := waiting.IDOf(types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetName()})
	if pod, single := o.(*corev1.Pod); single {
		id = waiting.IDOfPod(pod)
	}
	order := snapshot.OrderOf(o, priority)
	if group, ok := o.(*schedulingv1beta1.PodGroup); ok && snapshot.IsElastic(group) {
		order.Grows = q.holding(types.NamespacedName{Namespace: group.Namespace, Name: group.Name}) >= minCount(group)
	}
	return q.queue.DecidedOrder(id, order)
}

// objectOf is the object that an entity is about, nil for one of a kind we do not know.
func objectOf(e fwk.QueuedEntityInfo) metav1.Object {
	if g, ok := e.(groupEntity); ok {
		if group := g.GetPodGroup(); group != nil {
			return group
		}
	}
	if p, ok := e.(podEntity); ok {
		return p.GetPodInfo().GetPod()
	}
	return nil
}
