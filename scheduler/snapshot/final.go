package snapshot

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/topology"
)

// Final reports whether an eviction would end a gang's work for good, because nothing creates its members again: nothing that Lockstep does evicts them. It
// is false for pods in no gang, which have no PodGroup.
//
// This is the only place of the rule. The queue chooses no victims by it (Unit.Contender, waiting.Queue.Protects), moves no such gang
// (waiting.Queue.Move), and packages incompletegangs and leaving let such members stay.
func Final(group *schedulingv1beta1.PodGroup) bool {
	return group != nil && group.Annotations[topology.AnnotationOnLoss] == topology.OnLossGone
}
