package gangplacement

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

var _ fwk.PostFilterPlugin = (*GangPlacement)(nil)

// PostFilter has a pod that is in no gang and fits nowhere wait in the queue with the gangs. It makes no room, but
// reports the room that the pod needs.
func (p *GangPlacement) PostFilter(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, _ fwk.NodeToStatusReader,
) (*fwk.PostFilterResult, *fwk.Status) {
	none := fwk.NewStatus(fwk.Unschedulable)
	if _, member := snapshot.GroupOf(pod); member || !waiting.Alike(pod) {
		return nil, none
	}
	nodes, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil {
		return nil, fwk.AsStatus(err)
	}
	x, err := p.reader.Read(ctx, waiting.Asked{Waiting: []*corev1.Pod{pod}, Nodes: nodes, Now: p.clock.Now()})
	if err != nil {
		klog.FromContext(ctx).V(3).Info("Pod waits for events of the framework", "pod", klog.KObj(pod), "err", err)
		return nil, none
	}
	x.Lags = p.versions.lags(x.View)
	if needs := p.queue.Refused(x); needs != nil {
		state.Write(waiting.NeedsKey, needs)
	}
	return nil, none
}
