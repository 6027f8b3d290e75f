package gangplacement

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// starts returns the plan of a gang whose first member starts; nil for another member.
func (p *GangPlacement) starts(gang types.NamespacedName) *plan {
	plan := p.memory.coming
	if plan == nil || plan.placed.ID != waiting.IDOf(gang) {
		return nil
	}
	p.memory.coming = nil
	return plan
}

// restore leases, once after a start of the scheduler, places for the members that running gangs lack: late ones, and those of
// a start that was cut off. Gangs that wait longer would take them otherwise. It happens before the first gang is
// placed; ordinary pods may have been faster.
func (p *GangPlacement) restore(ctx context.Context, parent *fwk.Placement) {
	if p.memory.restored {
		return
	}
	p.memory.restored = true
	if p.memory.store != nil {
		p.memory.store.Load(ctx)
		p.queue.Keep(p.lacksNodes)
	}
	all := p.handle.SharedInformerFactory().Scheduling().V1beta1().PodGroups().Lister()
	groups, err := all.List(labels.Everything())
	if err != nil {
		return
	}
	slices.SortFunc(groups, func(a, b *schedulingv1beta1.PodGroup) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, group := range groups {
		running := p.running(group)
		if len(running) == 0 || group.Spec.SchedulingPolicy.Gang == nil {
			continue
		}
		if err := p.restoreOne(ctx, group, running, parent); err != nil {
			klog.FromContext(ctx).Info("No place is free for a member", "podGroup", klog.KObj(group), "reason", err)
		}
	}
}

// lacksNodes reports whether there is such an owner, and something of it has no node.
func (p *GangPlacement) lacksNodes(id contention.ID) bool {
	owner, single := waiting.NameOf(id)
	if single {
		pod, err := p.handle.SharedInformerFactory().Core().V1().Pods().Lister().Pods(owner.Namespace).Get(owner.Name)
		return err == nil && pod.Spec.NodeName == ""
	}
	group, err := p.handle.SnapshotSharedLister().PodGroups().Get(owner.Namespace, owner.Name)
	if err != nil {
		return false
	}
	gang := group.Spec.SchedulingPolicy.Gang
	return gang == nil || len(p.missing(group)) > 0 || len(p.running(group)) < int(gang.MinCount)
}

// restoreOne leases places for the members that one gang lacks.
func (p *GangPlacement) restoreOne(
	ctx context.Context, group *schedulingv1beta1.PodGroup, running []*corev1.Pod, parent *fwk.Placement,
) error {
	asked := waiting.Asked{Group: group, Running: running, Nodes: parent.Nodes, Now: p.clock.Now()}
	if len(running) < int(group.Spec.SchedulingPolicy.Gang.MinCount) {
		asked.Waiting = p.missing(group)
	}
	x, err := p.reader.Read(ctx, asked)
	if err != nil {
		return err
	}
	if refusal := p.queue.HoldMissing(x); refusal != nil {
		return errors.New(refusal.String())
	}
	return nil
}

// missing are the members that have no node in this cycle's snapshot.
func (p *GangPlacement) missing(group *schedulingv1beta1.PodGroup) []*corev1.Pod {
	state, err := p.handle.SnapshotSharedLister().PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return nil
	}
	return slices.Collect(maps.Values(state.UnscheduledPods())) // the order is that of ranks later
}
