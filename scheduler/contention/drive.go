package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// These are for drivers in which another queue chooses the next entity to evaluate, and another scheduler places single
// pods.

// Candidate reports whether an entity that waits may have to be evaluated now. It is true for an entity that the
// machine does not know.
func (m *Machine) Candidate(id ID) bool {
	s := m.queue.spots[id]
	if s == nil {
		return true
	}
	if l := m.Lease(id); l != nil && l.dirty && l.Reason.waits() {
		return true
	}
	if s.class.candidate() == s {
		return true
	}
	if s.class.noPlace || m.policy.MaxLeases == 0 {
		return false
	}
	heads, last := m.heads()
	return m.taker(s.class, heads, last) == s
}

// OrderOf returns the place in the queue of an entity that waits; false for another one.
func (m *Machine) OrderOf(id ID) (Order, bool) {
	s := m.queue.spots[id]
	if s == nil {
		return Order{}, false
	}
	return s.Order, true
}

// Entity returns an entity that waits, as it was added last; false if it does not wait.
func (m *Machine) Entity(id ID) (Entity, bool) {
	s := m.queue.spots[id]
	if s == nil {
		return Entity{}, false
	}
	return s.Entity, true
}

// Position returns where an entity stands among all that wait, from 1; 0 if it does not wait. It costs a search in each
// class.
func (m *Machine) Position(id ID) int {
	s := m.queue.spots[id]
	if s == nil {
		return 0
	}
	before := 0
	for _, c := range m.queue.classes {
		at, _ := slices.BinarySearchFunc(
			c.spots,
			s.Order,
			func(other *spot, of Order) int { return other.Order.Compare(of) },
		)
		before += at
	}
	for _, w := range m.queue.sweeps {
		before += w.before(s.Order)
	}
	return before + 1
}

// Knows reports whether an entity waits.
func (m *Machine) Knows(id ID) bool { return m.queue.spots[id] != nil }

// Pass advances the time without an event, and releases the leases that have expired. It returns Evicted for each gang
// whose start makes no progress, and Rechecks with the next instant at which something changes by time alone. Drivers
// call it at the instant of a Rechecks.
func (m *Machine) Pass(now int64) []Action {
	m.advance(now)
	out := append(m.expire(now), m.stuck(now)...)
	next := min(m.firstStuck(), m.queue.retry)
	for _, l := range m.leases {
		next = min(next, l.Expiry)
		if l.recheck > now {
			next = min(next, l.recheck)
		}
	}
	if next != None {
		out = append(out, Rechecks{next})
	}
	return out
}

// expire releases the leases past their expiry.
func (m *Machine) expire(now int64) []Action {
	var out []Action
	for _, l := range m.Leases() {
		if l.Expiry <= now {
			out = append(out, m.release(l, WhyExpired)...)
		}
	}
	return out
}

// HoldIn is Hold for a place in the coordinates of a snapshot.
func (m *Machine) HoldIn(snap *Snapshot, l Lease) []Action {
	m.enter(snap)
	return m.Hold(l, snap.Now)
}

// Reopen has the first entity of each class evaluated again, and look for a place: the last evaluations may have read a
// snapshot that was behind. A unit whose claims were still being written, for example, gave no devices back there. The
// deficits counted then would go on refusing entities.
func (m *Machine) Reopen() {
	for _, c := range m.queue.classes {
		c.beside.forget()
	}
	for _, l := range m.leases {
		l.spare.forget()
	}
	m.queue.mayHavePlaces()
	m.doubtSweeps()
	m.openAll()
}

// Trial returns where an entity would be placed in a snapshot, or why it does not fit. It is for dry runs: it changes
// neither the queue nor a lease.
func (m *Machine) Trial(e Entity, snap *Snapshot) Answer {
	m.enter(snap)
	m.DecideOrder(&e)
	ask := m.Asks(e, snap)
	own := snap.placer().Place(snap.Ledger, ask)
	binding := m.binding(&e, snap.Now)
	if own.Refusal != nil || len(touching(binding, own.Placement.Nodes)) == 0 {
		return own
	}
	t := &turn{Machine: m, snap: snap, s: &spot{Entity: e}, binding: binding}
	left := t.beside(snap, binding)
	defer left.Discard()
	if covers(left.Free, holdsOf(own.Gang, own.Placement)) {
		return own
	}
	return snap.placer().Place(left, ask)
}

// Guard returns the capacity of each leased node that an entity may use; nil if no lease binds it. Only the entity's
// order, run time, priority and preemptibility are read.
func (m *Machine) Guard(e Entity, snap *Snapshot) map[int]topology.Capacity {
	m.enter(snap)
	m.DecideOrder(&e)
	binding := m.binding(&e, snap.Now)
	if len(binding) == 0 {
		return nil
	}
	t := &turn{Machine: m, snap: snap, s: &spot{Entity: e}, binding: binding}
	left := t.beside(snap, binding)
	defer left.Discard()
	out := make(map[int]topology.Capacity)
	for _, l := range binding {
		for _, node := range l.Nodes {
			out[node] = slices.Clone(left.Free[node])
		}
	}
	return out
}

// Binds reports whether a lease binds an entity.
func (m *Machine) Binds(e Entity, now int64) bool {
	m.DecideOrder(&e)
	return len(m.binding(&e, now)) > 0
}

// Why drivers revoke leases.
const (
	// WhyArrived: the late member is there.
	WhyArrived = "the member is there"
	// WhyFinished: the members have succeeded.
	WhyFinished = "the members have succeeded"
	// WhyTakenAway: all members were taken away.
	WhyTakenAway = "all members were taken away"
	// WhyNoReturn: the owner's members leave for good.
	WhyNoReturn = "its job has ended"
	// WhyUnearned: the places were reserved for as long as they had been used.
	WhyUnearned = "kept for as long as it was used"
	// WhyGone: the owner is deleted.
	WhyGone = "the owner is deleted"
)

// Whole returns the placement with which a gang that lost members can start again as a whole if its remaining members
// leave; false if it fits nowhere. ask is the gang's question before its start.
func (m *Machine) Whole(e Entity, ask Ask, snap *Snapshot) (topology.Placement, bool) {
	m.enter(snap)
	m.DecideOrder(&e)
	own := snap.Running.Get(e.ID)
	if own == nil {
		return topology.Placement{}, false
	}
	asked := without(snap, Ask{Gang: ask.Least(), Needed: ask.Needed}, m.binding(&e, snap.Now))
	found, ok := chooseParts(snap, asked, []*Unit{own}, 0)
	return found.placement, ok
}

// Refuse adds an entity whose question cannot be evaluated, as one that does not fit.
func (m *Machine) Refuse(e Entity, reason Wait, now int64) []Action {
	m.advance(now)
	e.Sweep = Sweep{} // it starts in no turn
	m.Add(e)
	s := m.queue.spots[e.ID]
	s.class.full, s.reason = true, reason
	if l := m.Lease(e.ID); l != nil && l.Reason.waits() {
		return m.release(l, WhyWrong)
	}
	return nil
}
