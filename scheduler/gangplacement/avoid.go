package gangplacement

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"
)

// PreScore chooses the node of a member whose plan did not hold, and otherwise leaves alone the pods that use
// accelerators.
func (p *GangPlacement) PreScore(
	_ context.Context, state fwk.CycleState, pod *corev1.Pod, feasible []fwk.NodeInfo,
) *fwk.Status {
	if plan := cyclePlan(state); plan != nil {
		if plan.unpinned == nil || p.current(plan) != plan.unpinned {
			return fwk.NewStatus(fwk.Skip)
		}
		state.Write(choiceKey, &choice{plan.choose(pod.Name, feasible)})
		return nil
	}
	if !p.sampler.avoids(pod) {
		return fwk.NewStatus(fwk.Skip)
	}
	return nil
}

// choice is the node of a member. Left to the in-tree scores, a tie would be broken at random.
type choice struct{ node string }

// Clone returns the choice itself.
func (c *choice) Clone() fwk.StateData { return c }

// Score steers pods that need no accelerator away from the nodes that have some, while there are others: a gang that
// waits for whole racks would have to wait for them too. In-tree scoring does not see resources that a pod does not
// request.
func (p *GangPlacement) Score(
	_ context.Context, state fwk.CycleState, _ *corev1.Pod, node fwk.NodeInfo,
) (int64, *fwk.Status) {
	if data, err := state.Read(choiceKey); err == nil {
		if c, ok := data.(*choice); ok && c.node == node.Node().Name {
			return fwk.MaxScore, nil
		}
		return fwk.MinScore, nil
	}
	if p.sampler.offersAccelerators(node) {
		return fwk.MinScore, nil
	}
	return fwk.MaxScore, nil
}

// ScoreExtensions returns nil: scores are final.
func (*GangPlacement) ScoreExtensions() fwk.ScoreExtensions { return nil }
