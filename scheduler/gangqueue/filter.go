package gangqueue

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// Filter keeps pods from taking the room that is held on a node for a gang that is not theirs, and those in no gang from what is
// reserved for the gang that is first in the queue. Gangs are planned with that in mind.
func (q *GangQueue) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	own, member := snapshot.GroupOf(pod)
	held := q.slots.On(node.Node().Name, own)
	if !member {
		if reserved := q.book.On(node.Node().Name, pod); reserved != nil {
			held = quota.Add(held, reserved)
		}
	}
	if held == nil || snapshot.Fits(pod, node, held) {
		return nil
	}
	return fwk.NewStatus(fwk.Unschedulable, "room is held for a gang")
}
