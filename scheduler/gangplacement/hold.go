package gangplacement

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/scheduler/held"
	"github.com/lockstep-project/lockstep/topology"
)

// expect keeps the places that a plan has for late members until the gang starts.
func (p *GangPlacement) expect(gang types.NamespacedName, slots []held.Slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.coming[gang] = slots
}

// hold holds these places: the gang starts.
func (p *GangPlacement) hold(gang types.NamespacedName) {
	p.mu.Lock()
	slots, ok := p.coming[gang]
	delete(p.coming, gang)
	p.mu.Unlock()
	if ok { // the first of its members
		p.slots.Hold(gang, slots)
	}
}

// restore holds, once after a start of the scheduler, places for the members that gangs miss which run already: late ones,
// and those of a start that was cut off. Whoever waits longer would take them otherwise. It happens before the first gang is
// placed; ordinary pods may have been faster.
func (p *GangPlacement) restore(ctx context.Context, parent *fwk.Placement) {
	if p.restored {
		return
	}
	p.restored = true
	groups, err := p.handle.SharedInformerFactory().
		Scheduling().
		V1beta1().
		PodGroups().
		Lister().
		List(labels.Everything())
	if err != nil {
		return
	}
	slices.SortFunc(groups, func(a, b *schedulingv1beta1.PodGroup) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, group := range groups {
		q := question{
			group: group, key: types.NamespacedName{Namespace: group.Namespace, Name: group.Name}, parent: parent,
			running: p.running(group),
		}
		if len(q.running) == 0 || group.Spec.SchedulingPolicy.Gang == nil {
			continue
		}
		if no := p.restoreOne(ctx, q); no != "" {
			klog.FromContext(ctx).Info("No place can be held for a member", "podGroup", klog.KObj(group), "why", no)
		}
	}
}

// restoreOne says why nothing could be held, "" if it was or nothing has to be.
func (p *GangPlacement) restoreOne(ctx context.Context, q question) string {
	if len(q.running) < int(q.group.Spec.SchedulingPolicy.Gang.MinCount) {
		q.waiting = p.missing(q.group)
	}
	view, err := p.view(ctx, q)
	if err != nil {
		return err.Error()
	}
	gang, err := view.Gang(q.group, q.waiting, q.running, nil)
	if err != nil {
		return err.Error()
	}
	if !slices.ContainsFunc(gang.Members, func(m topology.Member) bool { return !m.Placed }) {
		return ""
	}
	ask := decision.Ask{Gang: gang, Needed: len(q.waiting)}
	answer := decision.Place(view.Ledger(p.slots.FromOthers(q.key)), ask)
	if answer.Refusal != nil {
		return answer.Refusal.String()
	}
	var slots []held.Slot
	for rank, at := range answer.Placement.Nodes {
		if m := answer.Gang.Members[rank]; !m.Placed {
			slots = append(slots, held.Slot{Node: view.Tree.Node(at), Room: view.Room(answer.Gang.Shapes[m.Shape])})
		}
	}
	p.slots.Hold(q.key, slots)
	return ""
}

// missing are the members that have no node in this cycle's snapshot.
func (p *GangPlacement) missing(group *schedulingv1beta1.PodGroup) []*corev1.Pod {
	state, err := p.handle.SnapshotSharedLister().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return nil
	}
	return slices.Collect(maps.Values(state.UnscheduledPods())) // the order is that of ranks later
}
