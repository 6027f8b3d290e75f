package gangplacement

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	// lateGrace is how long places of late members are leased: an MPI launcher is created when its workers are ready, which takes as
	// long as their images are pulled.
	lateGrace = time.Hour
	// startGrace is how long the places of a start that was cut off are leased.
	startGrace = 5 * time.Minute
)

// coming is the plan of the gang that starts, for its late members.
type coming struct {
	gang types.NamespacedName
	plan *plan
}

// holdLate leases the places of late members: the gang starts. If all of them are there, their lease ends.
func (p *GangPlacement) holdLate(gang types.NamespacedName) {
	c := p.memory.coming
	if c.plan == nil || c.gang != gang {
		return
	}
	p.memory.coming = coming{}
	if len(c.plan.late) == 0 {
		p.queue.EndHold(waiting.IDOf(gang), contention.LateMember)
		return
	}
	p.queue.Hold(c.plan.question, contention.LateMember, c.plan.late, lateGrace)
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

// restoreOne leases places for the members that one gang lacks.
func (p *GangPlacement) restoreOne(
	ctx context.Context, group *schedulingv1beta1.PodGroup, running []*corev1.Pod, parent *fwk.Placement,
) error {
	asked := waiting.Asked{Group: group, Running: running, Nodes: parent.Nodes, Now: p.clock.Now()}
	reason, grace := contention.LateMember, lateGrace
	if len(running) < int(group.Spec.SchedulingPolicy.Gang.MinCount) {
		asked.Waiting, reason, grace = p.missing(group), contention.Start, startGrace
	}
	x, err := p.reader.Read(ctx, asked)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(x.Choices[0].Gang.Members, func(m topology.Member) bool { return !m.Placed }) {
		return nil
	}
	answer := p.queue.Trial(x)
	if answer.Refusal != nil {
		return errors.New(answer.Refusal.String())
	}
	var holds []topology.Held
	for rank, at := range answer.Placement.Nodes {
		if m := answer.Gang.Members[rank]; !m.Placed {
			holds = append(holds, topology.Held{Node: at, Demand: answer.Gang.Shapes[m.Shape].Demand})
		}
	}
	p.queue.Hold(x, reason, holds, grace)
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
