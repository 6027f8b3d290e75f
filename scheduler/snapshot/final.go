package snapshot

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/topology"
)

// Final reports whether an eviction would end a gang's work for good, because nothing creates its members again. It is
// false for pods in no gang, which have no PodGroup.
//
// Such a gang leaves for a more important one, as bare pods do for kube-scheduler: a tenant must not be safe from every
// priority by submitting bare pods. But nothing else that Lockstep does evicts it: no move to another place
// (waiting.Queue.Move), no start from anew (package incompletegangs), no departure from a node that is to be avoided
// (package leaving).
func Final(group *schedulingv1beta1.PodGroup) bool {
	return group != nil && group.Annotations[topology.AnnotationOnLoss] == topology.OnLossGone
}

// JobEnded reports whether the gang's job has ended: its members leave for good, and no place is reserved for it. A
// group that is being deleted says less: a gang that starts again and shares claims gets a new one.
func JobEnded(group *schedulingv1beta1.PodGroup) bool {
	return group.Annotations[topology.AnnotationOnLoss] == topology.OnLossEnded
}
