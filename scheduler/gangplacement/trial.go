package gangplacement

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
)

// fleet is what a plan is made for.
type fleet int

const (
	asItIs fleet = iota
	// withoutVictims is what the fleet would be if a preemption had its way.
	withoutVictims
)

// PodGroupPostFilter never helps. It is asked before the plugin that preempts, and remembers for which gang that will ask
// what would be.
func (p *GangPlacement) PodGroupPostFilter(
	_ context.Context, _ fwk.PodGroupCycleState, info fwk.PodGroupInfo, _ fwk.PodGroupSchedulingFunc,
) (*fwk.PodGroupPostFilterResult, *fwk.Status) {
	if group := info.GetPodGroup(); group != nil {
		p.preempts = types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	}
	return nil, fwk.NewStatus(fwk.Unschedulable)
}

// fleetOf tells preemption's question from the next cycle's for the same gang: its nodes are copies.
func (p *GangPlacement) fleetOf(q question) fleet {
	if len(q.parent.Nodes) == 0 {
		return asItIs
	}
	if p.preempts == q.key && q.parent.Nodes[0] != p.real {
		return withoutVictims
	}
	p.preempts, p.real = types.NamespacedName{}, q.parent.Nodes[0]
	return asItIs
}
