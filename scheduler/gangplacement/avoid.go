package gangplacement

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
	fwk "k8s.io/kube-scheduler/framework"
)

// PreScore leaves alone the pods that use accelerators, and those whose node is planned.
func (p *GangPlacement) PreScore(
	_ context.Context,
	state fwk.CycleState,
	pod *corev1.Pod,
	_ []fwk.NodeInfo,
) *fwk.Status {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	for _, name := range p.accelerators {
		if q := requests[name]; !q.IsZero() {
			return fwk.NewStatus(fwk.Skip)
		}
	}
	if len(pod.Spec.ResourceClaims) > 0 || cyclePlan(state) != nil {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// Score keeps pods that need no accelerator off the nodes that have some, while there are others: a gang that waits for
// whole racks would have to wait for them too. In-tree scoring does not see resources that a pod does not ask for.
func (p *GangPlacement) Score(
	_ context.Context,
	_ fwk.CycleState,
	_ *corev1.Pod,
	node fwk.NodeInfo,
) (int64, *fwk.Status) {
	offered := node.GetAllocatable().GetScalarResources()
	for _, name := range p.accelerators {
		if offered[name] > 0 {
			return fwk.MinScore, nil
		}
	}
	return fwk.MaxScore, nil
}

// ScoreExtensions returns nil: scores are final.
func (*GangPlacement) ScoreExtensions() fwk.ScoreExtensions { return nil }
