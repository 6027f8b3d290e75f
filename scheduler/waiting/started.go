package waiting

import (
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// Started reports that members of the gang, or the pod, got these nodes. It returns the instant that was first reported
// for its lease, and whether it had one.
func (q *Queue) Started(id contention.ID, nodes []string) (expected time.Time, leased bool) {
	q.mu.Lock()
	q.events++
	defer q.learner.Starts(id) // after its entity was read for the last time
	at := q.numbers(nodes)
	expected, leased = q.reserved[id]
	delete(q.reserved, id)
	delete(q.refusedPreemptions, id)
	if !q.machine.Knows(id) { // another member of it, or a pod that has not waited
		q.machine.Taken(at)
		if len(q.machine.Leases()) > 0 {
			q.remindIfCandidates()
		}
		q.mu.Unlock()
		return time.Time{}, false
	}
	for _, action := range q.machine.Started(id, at, q.now()) {
		q.act(nil, action)
	}
	if q.placed != nil && q.placed.ID == id {
		q.begin()
	}
	q.count()
	next := q.due()
	q.mu.Unlock()
	q.wakeAll(next)
	return expected, leased
}

// begin notes that the entity that was placed has started. Its members that did not start with the others wait in its
// place.
func (q *Queue) begin() {
	now := q.clock.Clock.Now()
	placed, x := q.placed, q.asked
	e := q.entity(x, now)
	q.placed, q.asked = nil, nil
	u := q.unitThatStarts(x, e, placed, now)
	defer func() { q.begun[e.ID] = u }() // the snapshot does not have it yet
	if surplus, ok := surplusOf(e, placed); ok {
		surplus.Question = q.question(x, surplus.Ask.Gang)
		surplus.Order.Grows = snapshot.IsElastic(x.Group)
		q.machine.Add(surplus)
	}
	if !q.goesOn() {
		snap := q.snapshot(x, now)
		snap.Ledger = snap.Ledger.Beside(placed.Gang, placed.Placement)
		joined := snap.Running.Get(u.ID)
		snap.Running.Add(u)
		q.settle(&snap)
		snap.Running.Remove(u.ID) // the set is the view's
		if joined != nil {
			snap.Running.Add(joined)
		}
		snap.Ledger.Discard()
	}
}

// unitThatStarts returns the unit that an entity becomes, or that its members join.
func (q *Queue) unitThatStarts(
	x *Question, e contention.Entity, placed *contention.Placed, now time.Time,
) *contention.Unit {
	holds := holdsOf(placed.Gang, placed.Placement, fresh)
	if len(x.Running) > 0 {
		if joined := q.unitOf(x.Running[0]); joined != nil {
			u := *joined
			u.Holds = slices.Concat(u.Holds, holds)
			return &u
		}
	}
	u := &contention.Unit{
		ID: e.ID, Started: now.Unix(), Holds: holds,
		Priority: e.Order.Priority, Preemptible: e.Preemptible, Grace: e.Grace,
		Sweep: e.Sweep,
	}
	if e.RunTime > 0 {
		u.End = contention.End{At: now.Unix() + e.RunTime, Certainty: contention.Predicted}
	}
	if declared(x.Group, x.first(), now) > 0 {
		u.End.Certainty = contention.Reported
	}
	return u
}

// fresh reports whether a member is one that waits.
func fresh(m topology.Member) bool { return !m.Placed && !m.Late }

// surplusOf returns the members of an entity that were not placed with the others.
func surplusOf(e contention.Entity, placed *contention.Placed) (contention.Entity, bool) {
	nodes := make(map[string]int)
	for rank, node := range placed.Placement.Nodes {
		if m := placed.Gang.Members[rank]; fresh(m) {
			nodes[m.Name] = node
		}
	}
	e.Ask.Gang.Members = slices.Clone(e.Ask.Gang.Members)
	left, all := int64(0), int64(0)
	for i := range e.Ask.Gang.Members {
		m := &e.Ask.Gang.Members[i]
		if !fresh(*m) {
			continue
		}
		all++
		if m.Node, m.Placed = nodes[m.Name]; !m.Placed {
			left++
		}
	}
	if left == 0 {
		return e, false
	}
	e.Ask.Needed, e.Order.Replacement = 1, false
	e.Accelerators = e.Accelerators * left / all
	return e, true
}

// numbers are the nodes in the machine's numbering.
func (q *Queue) numbers(names []string) []int {
	var out []int
	if q.seen.tree == nil {
		return nil
	}
	for _, name := range names {
		if at, ok := q.seen.tree.Index(name); ok {
			out = append(out, at)
		}
	}
	return out
}
