package gangpreemption

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// Moved is the reason of the condition DisruptionTarget of members that leave with their gang.
const Moved = "GangMoved"

// move evicts the remaining members of a gang that lost members, if the lost ones have no room near the others and no
// eviction makes any, but the whole gang has room elsewhere: its job starts it again then, as its policy for
// disruptions says, and finds the place leased for it. A gang that has no room anywhere retains its survivors for a
// while, since a node may return (see package incompletegangs).
func (p *GangPreemption) move(ctx context.Context, x *waiting.Question) bool {
	to, ok := p.queue.Move(x)
	if !ok {
		return false
	}
	id := waiting.IDOf(keyOf(x.Group))
	survivors := p.units(x, []contention.ID{id})
	if len(survivors) == 0 {
		return false
	}
	if !p.underway.holds(survivors[0]) {
		metrics.MovedGangs.Inc()
	}
	klog.FromContext(ctx).V(2).Info("Moving gang", "podGroup", klog.KObj(x.Group), "lost", len(x.Waiting),
		"survivors", len(survivors[0].Pods), "to", to.Within.String())
	p.evict(survivors, cause{
		reason:  Moved,
		event:   "Moved",
		action:  "Moving",
		by:      x.Group,
		message: "members that the gang lost have no room near the others; all of it starts again in " + to.Within.String(),
	})
	return true
}
