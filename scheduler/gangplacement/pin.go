package gangplacement

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// PreFilter offers a member only its planned node. In the unpinned placement it lets the framework choose, unless the
// planned one held every member: then there is nothing to look for. It must be the first PreFilter, or that costs more.
func (p *GangPlacement) PreFilter(
	ctx context.Context, state fwk.CycleState, pod *corev1.Pod, nodes []fwk.NodeInfo,
) (*fwk.PreFilterResult, *fwk.Status) {
	plan := cyclePlan(state)
	if plan == nil {
		p.restorer.restore(ctx)
		p.sampler.searchSome(pod)
		return nil, p.keepOff(state, pod, nodes)
	}
	p.sampler.searchAll()
	switch p.current(plan) {
	case plan.pinned:
		pin := plan.pins[pod.Name]
		if pin == nil {
			return nil, fwk.NewStatus(fwk.Unschedulable, "the gang starts without this member")
		}
		state.Write(pinKey, pin)
		return &fwk.PreFilterResult{NodeNames: sets.New(pin.node)}, nil
	case plan.unpinned:
		if plan.held == len(plan.pins) {
			return nil, fwk.NewStatus(fwk.Unschedulable, "the planned nodes hold the gang")
		}
		plan.tryLoose()
		if plan.guard == nil && plan.question != nil && p.queue.Leasing() {
			plan.guard = p.queue.Guard(plan.question)
		}
		return nil, nil // not Skip: Filter notes that nodes were asked
	}
	return nil, fwk.NewStatus(fwk.Skip)
}

// Planned is the node on which the cycle wants its pod, "" if it has no plan for it.
func Planned(state fwk.CycleState) string {
	data, err := state.Read(pinKey)
	if err != nil {
		return ""
	}
	if pin, ok := data.(*pin); ok {
		return pin.node
	}
	return ""
}

// PreFilterExtensions returns nil: a pin does not depend on other pods.
func (*GangPlacement) PreFilterExtensions() fwk.PreFilterExtensions { return nil }

// Filter pins too, because a nominated node is tried before PreFilter's set.
func (*GangPlacement) Filter(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	data, err := state.Read(pinKey)
	if err != nil {
		return filterUnpinned(state, pod, node)
	}
	pin, ok := data.(*pin)
	if !ok || pin.node == node.Node().Name {
		if ok {
			pin.tried.Store(true)
		}
		return nil
	}
	return fwk.NewStatus(fwk.Unschedulable, "planned on another node")
}

// filterUnpinned rejects a node that a pod may not use, if the framework chooses the pod's node.
func filterUnpinned(state fwk.CycleState, pod *corev1.Pod, node fwk.NodeInfo) *fwk.Status {
	plan := cyclePlan(state)
	if plan == nil { // not a member of a planned gang
		if why := isOff(state, pod, node); why != "" {
			return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, why)
		}
		return nil
	}
	if plan.closes(node.Node().Name) {
		return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "closed to the gang")
	}
	plan.asked.Store(true)
	if !plan.guard.Admits(pod, node.Node().Name) {
		return fwk.NewStatus(fwk.Unschedulable, "the node is reserved for a gang")
	}
	return nil
}

// Reserve counts the members that the planned placement holds. Outside the group's cycle it is the real reservation:
// the gang starts, and earlier refusals of its nodes do not matter any more.
func (p *GangPlacement) Reserve(_ context.Context, state fwk.CycleState, pod *corev1.Pod, node string) *fwk.Status {
	plan := cyclePlan(state)
	if plan == nil {
		if group, ok := snapshot.GroupOf(pod); ok && !state.IsPodGroupSchedulingCycle() {
			p.suspicion.podSent(pod)
			p.history.gangPlaced(group)
			p.memberStarts(group, node)
		} else if !ok {
			p.suspicion.podSent(pod)
			p.queue.Started(waiting.IDOfPod(pod), []string{node})
		}
		return nil
	}
	current := p.current(plan)
	if current != nil && current == plan.unpinned {
		plan.useful.Store(true)
	}
	if pin := plan.pins[pod.Name]; pin != nil && pin.node == node && current == plan.pinned {
		if !pin.held.Swap(true) {
			plan.held++
		}
	}
	return nil
}

// memberStarts reports to the queue that a member of the gang starts. The first one ends the gang's wait.
func (p *GangPlacement) memberStarts(key types.NamespacedName, node string) {
	expected, leased := p.queue.Started(waiting.IDOf(key), []string{node})
	if leased {
		p.metrics.observeStart(expected)
	}
	var place *standing.Place
	if plan := p.takePlan(key); plan != nil {
		p.queue.HoldLate(plan.question, plan.placed)
		place = placeOf(plan)
	}
	if group, err := p.handle.PodGroupManager().PodGroups().Get(key.Namespace, key.Name); err == nil {
		p.explain.Placed(group, place)
	}
}

// takePlan returns the plan of a gang whose first member starts; nil for another member.
func (p *GangPlacement) takePlan(gang types.NamespacedName) *plan {
	plan := p.coming
	if plan == nil || plan.placed.ID != waiting.IDOf(gang) {
		return nil
	}
	p.coming = nil
	return plan
}

// Unreserve reports to the queue that room is given back unused: no event of the API reports that. A plan lasts one
// cycle, so its trials need no undoing.
func (p *GangPlacement) Unreserve(_ context.Context, state fwk.CycleState, _ *corev1.Pod, _ string) {
	if !state.IsPodGroupSchedulingCycle() {
		p.queue.Again()
	}
}

// cyclePlan is the plan of the pod's group cycle, nil outside one.
func cyclePlan(state fwk.CycleState) *plan {
	if !state.IsPodGroupSchedulingCycle() {
		return nil
	}
	return planOf(state.GetPodGroupSchedulingCycle())
}
