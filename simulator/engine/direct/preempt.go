package direct

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/topology"
)

// preempt ends the gangs that lose least, if the gang fits then, and lets it start in their place. It reports whether it did.
func (e *player) preempt(i int, gang topology.Gang) bool {
	who := slices.DeleteFunc(slices.Clone(e.live()), func(r *run) bool { return !e.yields(r, i) })
	if len(who) == 0 {
		return false
	}
	slices.SortFunc(who, func(a, b *run) int { // as the scheduler has them: of those that lose the same the first leave
		x, y := &e.scene.Jobs[a.job], &e.scene.Jobs[b.job]
		return cmp.Or(cmp.Compare(x.Order.Priority, y.Order.Priority), cmp.Compare(x.Name, y.Name))
	})
	var running []topology.Running
	for _, r := range who {
		lost := e.scene.Jobs[r.job].Accelerators * (e.now - r.start - e.saved(r))
		running = append(running, topology.Running{Name: e.scene.Jobs[r.job].Name, Holds: r.holds, Cost: lost})
	}
	e.tally.decisions++
	eviction, short, err := topology.Evict(e.ledger, gang, running)
	if short != nil || err != nil || len(eviction.Victims) == 0 {
		return false
	}
	for _, v := range eviction.Victims {
		e.end(who[v], running[v].Cost)
	}
	asked := &e.scene.Jobs[i]
	answer := decision.Place(e.ledger, decision.Ask{Gang: asked.Gang, Needed: asked.Needed})
	if answer.Refusal == nil {
		e.start(i, answer.Gang, answer.Placement)
	}
	return true
}

// yields reports whether the run may be ended for the job.
func (e *player) yields(r *run, i int) bool {
	if r.job == nobody {
		return false
	}
	other := &e.scene.Jobs[r.job]
	return other.Preemptible && other.Order.Priority < e.scene.Jobs[i].Order.Priority
}

// saved is how long the run had run when it saved its work last.
func (e *player) saved(r *run) int64 {
	every := e.scene.Jobs[r.job].Saves
	if every <= 0 {
		return 0
	}
	return (e.now - r.start) / every * every
}

// end ends a run for another, and lets its gang wait again for what it has left.
func (e *player) end(r *run, lost int64) {
	e.ends.remove(r)
	e.finish(r, Preempted)
	e.tally.preempt(r.job, lost)
	j := &e.jobs[r.job]
	if j.left != Forever {
		j.left -= e.saved(r)
	}
	j.since = e.now
	e.wait(r.job)
}
