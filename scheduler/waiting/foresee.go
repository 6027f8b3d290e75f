package waiting

import (
	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/forecast"
	"github.com/lockstep-project/lockstep/scheduler/runtimes"
)

// foresee has the start of an entity forecast that has to wait: not that of members that join others.
func (q *Queue) foresee(x *Question, snap *contention.Snapshot) {
	if q.learner == nil || x.leavesPreemption() || len(x.Running) > 0 {
		return
	}
	q.learner.Foresee(x.id(), func() runtimes.Sight { return q.sight(x, snap) })
}

// sight returns the queue as a waiting entity sees it.
func (q *Queue) sight(x *Question, snap *contention.Snapshot) runtimes.Sight {
	out := runtimes.Sight{
		Accelerators: x.Accelerators, Running: snap.Running.All(),
		Peers: forecast.Peers(x.Waiting[0].Namespace, orderOf(x.Group, x.Waiting[0]).Priority),
	}
	for _, free := range snap.Ledger.Free {
		for _, i := range snap.Accelerators {
			if i < len(free) {
				out.Free += free[i]
			}
		}
	}
	before := true
	for _, id := range q.machine.Waiting() {
		if id == x.id() {
			before = false
			continue
		}
		e, _ := q.machine.Entity(id)
		if e.Accelerators == out.Accelerators {
			out.Oldest = max(out.Oldest, snap.Now-e.Order.Since.Unix())
		}
		if before {
			out.Ahead = append(out.Ahead, runtimes.Ahead{ID: id, Accelerators: e.Accelerators})
		}
	}
	return out
}

// Foreseen returns the forecast of the start of an entity that waits; false without one, or if its last instant has
// passed.
func (q *Queue) Foreseen(id contention.ID) (runtimes.Foreseen, bool) {
	told, ok := q.learns().Foreseen(id)
	return told, ok && told.At+told.High > q.now()
}
