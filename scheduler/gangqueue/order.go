package gangqueue

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// What the queue's concrete entities offer: a group its PodGroup, a single pod itself.
type (
	groupEntity interface {
		GetPodGroup() *schedulingv1beta1.PodGroup
	}
	podEntity interface{ GetPodInfo() fwk.PodInfo }
)

// Less puts the higher priority first, then who waits longer, then the name. The queue's own timestamp is not asked: it
// is renewed by every attempt.
func (*GangQueue) Less(a, b fwk.QueuedEntityInfo) bool {
	oa, ob := objectOf(a), objectOf(b)
	if oa == nil || ob == nil {
		return ob == nil && oa != nil
	}
	return snapshot.OrderOf(oa, a.GetPriority()).Compare(snapshot.OrderOf(ob, b.GetPriority())) < 0
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
