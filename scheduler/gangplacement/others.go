package gangplacement

import (
	"context"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// The loop has other entities to serve: one cycle evaluates so many others at most, and begins none after so long.
const (
	mostOthers = 256
	mostTime   = 50 * time.Millisecond
)

// considerOthers evaluates the other waiting gangs that have to be, in the cycle of this one, as long as none of them
// starts. before is the place of this gang if only earlier ones are meant.
func (p *GangPlacement) considerOthers(ctx context.Context, q question, before *contention.Order) {
	all, err := p.handle.SnapshotSharedLister().NodeInfos().List()
	if err != nil || len(q.parent.Nodes) != len(all) {
		return // the placement of a group around it: the others are not confined to that
	}
	for range mostOthers {
		id, ok := p.queue.Following(before)
		if !ok {
			return
		}
		other, ok := p.otherOf(id, q)
		if !ok || p.clock.Since(q.began) > mostTime {
			p.queue.Call(id)
			return
		}
		if !p.consider(ctx, other) {
			return
		}
	}
}

// otherOf returns the question of a waiting gang in the cycle of another one. It is false if the gang needs a cycle of
// its own: it lost members, is not complete, was refused by filters, preempts in-tree, claims devices, or is of another
// profile.
func (p *GangPlacement) otherOf(id contention.ID, of question) (question, bool) {
	key, _ := waiting.NameOf(id)
	group, err := p.handle.PodGroupManager().PodGroups().Get(key.Namespace, key.Name)
	if err != nil || group.Spec.SchedulingPolicy.Gang == nil ||
		p.preemption.waits(key) || p.history.hasRefusals(key) {
		return question{}, false
	}
	q := question{
		group: group, key: key, parent: of.parent, began: p.clock.Now(),
		running: runningMembers(p.handle.SnapshotSharedLister(), group),
		waiting: waitingMembers(p.handle.SnapshotSharedLister(), group),
	}
	q.needed = int(group.Spec.SchedulingPolicy.Gang.MinCount) - len(q.running)
	if len(q.waiting) == 0 || len(q.waiting) < q.needed || q.mayMove() ||
		q.waiting[0].Spec.SchedulerName != of.waiting[0].Spec.SchedulerName {
		return question{}, false
	}
	return q, p.reader.Stock == nil || !p.reader.Stock.Claims(q.waiting)
}

// consider evaluates a gang in the cycle of another one. It is false if the gang has a cycle of its own next.
func (p *GangPlacement) consider(ctx context.Context, q question) bool {
	barred, _ := p.barred(q, q.began)
	x, err := p.read(ctx, q, barred)
	if err != nil {
		p.queue.Call(waiting.IDOf(q.key))
		return false
	}
	x.Lags = p.versions.lags(x.View)
	if len(q.running) == 0 {
		p.queue.EndHold(waiting.IDOf(q.key), contention.LateMember)
	}
	out, ok := p.queue.Consider(x)
	if ok {
		p.explainWait(ctx, q, x, out)
	}
	return ok
}
