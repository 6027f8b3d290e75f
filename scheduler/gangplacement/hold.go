package gangplacement

import (
	"cmp"
	"context"
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/held"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
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

// restore holds, once after a start of the scheduler, places for the late members of gangs that run already. It happens
// before the first gang is placed; ordinary pods may have been faster.
func (p *GangPlacement) restore(ctx context.Context, view snapshot.View) {
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
		if group.Annotations[topology.AnnotationLateMembers] == "" {
			continue
		}
		if no := p.restoreOne(view, group); no != "" {
			klog.FromContext(ctx).
				Info("No place can be held for a late member", "podGroup", klog.KObj(group), "why", no)
		}
	}
}

// restoreOne says why nothing could be held, "" if it was or nothing has to be.
func (p *GangPlacement) restoreOne(view snapshot.View, group *schedulingv1beta1.PodGroup) string {
	running := p.running(group)
	if len(running) == 0 {
		return ""
	}
	gang, err := view.Gang(group, nil, running, nil)
	if err != nil {
		return err.Error()
	}
	if !slices.ContainsFunc(gang.Members, func(m topology.Member) bool { return m.Late }) {
		return ""
	}
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	gang, placement, no := place(view.Ledger(p.slots.FromOthers(key)), gang, 0)
	if no != nil {
		return no.message
	}
	plan := p.newPlan(view, placement, gang, question{parent: &fwk.Placement{}})
	p.slots.Hold(key, plan.slots)
	return ""
}
