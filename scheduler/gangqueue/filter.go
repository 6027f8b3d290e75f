package gangqueue

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// Filter keeps pods from taking the room that is held on a node for a gang that is not theirs.
func (q *GangQueue) Filter(_ context.Context, _ fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	own, _ := snapshot.GroupOf(pod)
	held := q.slots.On(node.Node().Name, own)
	if held == nil || snapshot.Fits(pod, node, held) {
		return nil
	}
	return fwk.NewStatus(fwk.Unschedulable, "room is held for a member of a running gang")
}
