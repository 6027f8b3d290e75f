package gangpreemption

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/held"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/unplaced"
	"github.com/lockstep-project/lockstep/scheduler/victims"
	"github.com/lockstep-project/lockstep/topology"
)

// Moved is the reason of the condition DisruptionTarget of members that leave with their gang.
const Moved = "GangMoved"

// move ends what is left of a gang that lost members, if these have no room near the others and nobody makes any, but all of
// it has somewhere else: its job starts it again then, as its policy for disruptions says, and finds the room held for it. A
// gang that has no room anywhere keeps its survivors for a while, since a node may come back (see package partial).
func (p *GangPreemption) move(ctx context.Context, asked unplaced.Gang) bool {
	key := types.NamespacedName{Namespace: asked.Group.Namespace, Name: asked.Group.Name}
	ledger := asked.View.Ledger(p.slots.FromOthers(key))
	found, ok := victims.Move(p.outside(asked), ledger, p.handle.SnapshotSharedLister().PodGroups())
	if !ok {
		return false
	}
	p.slots.Hold(key, slotsOf(asked, found.Placement))
	if !p.underway.holds(found.Victims[0]) {
		metrics.MovedGangs.Inc()
	}
	klog.FromContext(ctx).V(2).Info("Moves", "gang", asked.Gang.Name, "lost", len(asked.Waiting),
		"survivors", len(found.Victims[0].Pods), "to", found.Placement.Within.String())
	p.evict(found.Victims, cause{
		reason: Moved, event: "Moved", action: "Moving", by: asked.Group,
		message: "members that the gang lost have no room near the others; all of it starts again in " +
			found.Placement.Within.String(),
	})
	return true
}

// outside is the gang as it may not use what is kept for one that is before it.
func (p *GangPreemption) outside(asked unplaced.Gang) unplaced.Gang {
	if head := p.book.Before(asked.Group); head != nil {
		return asked.Outside(head.Rooms, head.Key.String())
	}
	return asked
}

// slotsOf are the places of all members.
func slotsOf(asked unplaced.Gang, placement topology.Placement) []held.Slot {
	slots := make([]held.Slot, len(placement.Nodes))
	for rank, at := range placement.Nodes {
		shape := asked.Gang.Shapes[asked.Gang.Members[rank].Shape]
		slots[rank] = held.Slot{Node: asked.View.Tree.Node(at), Room: asked.View.Room(shape)}
	}
	return slots
}
