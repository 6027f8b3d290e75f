package contention

import (
	"maps"
	"slices"
)

// Machine is the state of the queue: the waiting entities and the leases. Make one with New. It is not safe for
// concurrent use.
type Machine struct {
	policy Policy
	now    int64
	queue  queue
	// leases are all leases in the order of their owners.
	leases []*Lease
	// away are the budgets of owners that left the queue, for the grace.
	away map[ID]Absence
	// starting are the gangs that start, and when each made progress last.
	starting map[ID]int64
	idled    ceiling
	// evictions are remembered for Terms.MaxPerDay (see evicted.go). Drains, lost nodes and starts without progress are
	// none.
	evictions evictions
	scratch   scratch
	// blocked says that the ceiling of all leases is reached.
	blocked bool
	// coordinates are those in which the leases stand.
	coordinates any
	// domains are those of the last snapshot's tree.
	domains domains
	levels  levels
	// ended is the instant at which a unit ended last.
	ended int64
	// touched are the nodes on which something has changed since the last snapshot.
	touched []int
	// services and eased are those of the last snapshot's units.
	services, eased int
}

// New returns an empty machine.
func New(policy Policy) *Machine {
	return &Machine{
		policy: policy, queue: newQueue(), away: make(map[ID]Absence), starting: make(map[ID]int64),
		evictions: make(evictions),
	}
}

// Leases returns all leases in the order of their owners. They belong to the machine.
func (m *Machine) Leases() []*Lease { return slices.Clone(m.leases) }

// Lease returns the lease of an owner, nil if it has none.
func (m *Machine) Lease(owner ID) *Lease {
	for _, l := range m.leases {
		if l.Owner == owner {
			return l
		}
	}
	return nil
}

// Waiting returns the IDs of all waiting entities in order.
func (m *Machine) Waiting() []ID {
	var out []ID
	for _, s := range m.queue.sorted() {
		out = append(out, s.ID)
	}
	return out
}

// Len returns the number of waiting entities.
func (m *Machine) Len() int { return len(m.queue.spots) }

// Reason returns why an entity waits, as of its last evaluation or of that of an entity with the same question; false
// if it does not wait.
func (m *Machine) Reason(id ID) (Wait, bool) {
	s := m.queue.spots[id]
	if s == nil {
		return Wait{}, false
	}
	if s.held {
		return s.heldReason(), true
	}
	if s.reason.Cause == "" && len(s.class.spots) > 0 {
		return s.class.spots[0].reason, true
	}
	return s.reason, true
}

// Add puts a ready entity into the queue, or replaces it there.
func (m *Machine) Add(e Entity) {
	m.queue.tidy()
	m.DecideOrder(&e)
	e.apart = m.parted(&e)
	before := m.queue.spots[e.ID]
	m.queue.add(e)
	if w := m.queue.spots[e.ID].sweep; w != nil {
		m.allot(w)
	}
	if l := m.Lease(e.ID); l != nil {
		if before == nil || before.Entity.class() != e.class() || before.Order != e.Order {
			m.forgetRooms() // the leases beside which they were counted may be later ones now
		}
		l.ask, l.dirty = e.Ask, true
		if l.Reason.waits() {
			l.Expiry = None
		}
		l.Order, l.discipline, l.preempts = e.Order, m.policy.discipline(&e), m.policy.insists(&e)
		m.sort()
	}
}

// Remove takes an entity that is deleted or not ready out of the queue, and releases its head or preemption lease; a
// lease for another reason stays. The budget of a head lease is remembered for Policy.Grace, also for an entity that is
// created anew under the same ID.
func (m *Machine) Remove(id ID, now int64) []Action {
	m.advance(now)
	s := m.leave(id)
	l := m.Lease(id)
	if l == nil || !l.Reason.waits() {
		return nil
	}
	if s != nil && l.Reason == Head {
		m.away[id] = Absence{Question: s.Entity.class().question, Budget: l.Budget, Until: now + m.policy.Grace}
	}
	return m.release(l, WhyNotReady)
}

// leave takes an entity out of the queue, and returns its spot, nil if it is not there. Another trial of its sweep may
// have its turn.
func (m *Machine) leave(id ID) *spot {
	s := m.queue.remove(id)
	if s != nil && s.sweep != nil {
		m.allot(s.sweep)
	}
	return s
}

// Started says that an entity started on these nodes. The driver adds the unit to its Units.
func (m *Machine) Started(id ID, nodes []int, now int64) []Action {
	m.advance(now)
	if s := m.queue.spots[id]; s != nil && s.sweep != nil {
		s.sweep.running.count++
	}
	m.leave(id)
	delete(m.away, id)
	m.Taken(nodes)
	if l := m.Lease(id); l != nil && l.Reason != LateMember {
		return m.release(l, WhyStarted)
	}
	return nil
}

// Hold grants a lease whose owner does not wait for an instant: for a start, a replacement, a late member or a move. It
// replaces the owner's lease.
func (m *Machine) Hold(l Lease, now int64) []Action {
	m.advance(now)
	var out []Action
	if old := m.Lease(l.Owner); old != nil {
		out = m.release(old, WhyReplaced)
	}
	l.Instant, l.preempts = None, m.policy.insists(&Entity{Order: l.Order})
	l.settle(l.Holds)
	l.recheck, l.clears = None, None
	l.Order.Replacement = true
	if l.Expiry == 0 {
		l.Expiry = now + m.policy.Grace
	}
	return append(out, m.grant(&l)...)
}

// HoldByName is Hold for a place that the driver has by name only: the next snapshot has its coordinates.
func (m *Machine) HoldByName(l Lease, now int64) []Action {
	l.Holds, m.coordinates = nil, nil
	return m.Hold(l, now)
}

// Revoke ends the lease of an owner: its policy has answered, or an administrator says so.
func (m *Machine) Revoke(owner ID, why string, now int64) []Action {
	m.advance(now)
	l := m.Lease(owner)
	if l == nil {
		return nil
	}
	return m.release(l, why)
}

// Next returns the entity that has to be evaluated next, in order; false if none has.
func (m *Machine) Next() (ID, bool) {
	var first *spot
	m.eachCandidate(func(s *spot) { first = earliest(first, s) })
	if first == nil {
		return "", false
	}
	return first.ID, true
}

// Candidates returns the entities that may have to be evaluated now, in order: of each class the next to evaluate and
// the next that may get a lease, and the owners of leases that have changed. It is for drivers in which another queue,
// in the same order, chooses the next entity.
func (m *Machine) Candidates() []ID {
	found := make(map[ID]*spot)
	m.eachCandidate(func(s *spot) { found[s.ID] = s })
	spots := slices.SortedFunc(maps.Values(found), func(a, b *spot) int { return a.Order.Compare(b.Order) })
	ids := make([]ID, len(spots))
	for i, s := range spots {
		ids[i] = s.ID
	}
	return ids
}

func (m *Machine) eachCandidate(visit func(*spot)) {
	heads, last := m.heads()
	offer := func(s *spot) {
		if s != nil {
			visit(s)
		}
	}
	for _, c := range m.queue.classes {
		if len(c.spots) == 0 {
			continue
		}
		offer(c.candidate())
		if !c.noPlace && m.policy.MaxLeases > 0 {
			offer(m.taker(c, heads, last))
		}
	}
	for _, l := range m.leases {
		if l.dirty && l.Reason.waits() {
			offer(m.queue.spots[l.Owner])
		}
	}
}

// taker returns the first of a class that may get a lease and has none; nil for none.
func (m *Machine) taker(c *class, heads int, last *Lease) *spot {
	for _, s := range c.spots {
		if m.Lease(s.ID) == nil {
			if s.Accelerators > 0 && !s.Order.Grows && (heads < m.policy.MaxLeases || last.Order.Compare(s.Order) > 0) {
				return s
			}
			return nil
		}
	}
	return nil
}

// mayLease reports whether an entity is among the first that may have a lease.
func (m *Machine) mayLease(order Order) bool {
	heads, last := m.heads()
	return heads < m.policy.MaxLeases || last != nil && last.Order.Compare(order) > 0
}

// heads counts the head leases, and returns the last of them, nil for none.
func (m *Machine) heads() (n int, last *Lease) {
	for _, l := range m.leases {
		if l.Reason == Head {
			n, last = n+1, l
		}
	}
	return n, last
}

// advance lets time pass in which nothing happened.
func (m *Machine) advance(now int64) {
	passed := now - m.now
	if passed <= 0 {
		return
	}
	for _, l := range m.leases {
		idled := l.idled(passed)
		l.Budget.spend(idled, l.weight())
		m.idled.add(now, idled)
		if now >= l.recheck {
			l.dirty = true
		}
	}
	m.queue.reconsider(now)
	for id, a := range m.away {
		if now > a.Until {
			delete(m.away, id)
		}
	}
	m.now = now
}

// Budget returns the budget of a lease with its idle time until an instant: evaluations meter it, and it may be read in
// between.
func (m *Machine) Budget(l *Lease, now int64) Budget {
	b := l.Budget
	b.spend(l.idled(max(0, now-m.now)), l.weight())
	return b
}

// enter lets time pass until the snapshot, and translates the leases into its coordinates.
func (m *Machine) enter(snap *Snapshot) {
	m.advance(snap.Now)
	if snap.Coordinates == m.coordinates || snap.Held == nil {
		return
	}
	m.coordinates = snap.Coordinates
	m.forget()
	for _, l := range m.leases {
		members := len(l.Holds)
		l.settle(snap.Held(l))
		switch {
		case len(l.Holds) < members:
			l.broken, l.dirty = true, true
		case members == 0:
			m.markOverlappingDirty(l)
		}
	}
}

// Observe enters the snapshot, and brings guesses up to date. Turn observes its snapshot first.
func (m *Machine) Observe(snap *Snapshot) []Action {
	m.read(snap)
	return m.drift(snap)
}

// read enters the snapshot, and counts the changes there.
func (m *Machine) read(snap *Snapshot) {
	m.enter(snap)
	m.services = snap.Running.services
	if eased := snap.Running.eased; eased != m.eased {
		m.eased = eased
		m.forget()
	}
	m.countSweeps(snap)
	m.recount(snap)
}

func (m *Machine) sort() {
	slices.SortStableFunc(m.leases, func(a, b *Lease) int { return a.Order.Compare(b.Order) })
}

// grant adds a lease. Later leases in its place are displaced; of too many head leases the last is released. Preemption
// leases are not counted: their owners' victims leave.
func (m *Machine) grant(l *Lease) []Action {
	m.leases = append(m.leases, l)
	m.sort()
	m.markOverlappingDirty(l)
	out := []Action{Leased{l}}
	heads := 0
	for _, other := range m.leases {
		if other.Reason == Head {
			heads++
			if heads > m.policy.MaxLeases {
				return append(out, m.release(other, WhyDisplaced)...)
			}
		}
	}
	return out
}

// markOverlappingDirty has later leases evaluated again whose places overlap with that of a lease.
func (m *Machine) markOverlappingDirty(l *Lease) {
	for _, other := range m.leases {
		if other != l && other.Order.Compare(l.Order) > 0 && other.touches(l.Nodes) {
			other.dirty, other.skipped = true, false
		}
	}
}

// release ends a lease and has those evaluated that it refused.
func (m *Machine) release(l *Lease, why string) []Action {
	m.leases = slices.DeleteFunc(slices.Clone(m.leases), func(other *Lease) bool { return other == l })
	m.RecountSweep(l.Sweep)
	m.unrefuse(l)
	m.vacated(l)
	m.queue.mayHavePlaces()
	for _, other := range m.leases { // a lease that it displaced may find an earlier place
		if other.Order.Compare(l.Order) > 0 && other.Reason.waits() {
			other.dirty, other.searching, other.skipped = true, true, false
		}
	}
	return []Action{Released{l, why}}
}

// unrefuse has those evaluated again that a lease barred.
func (m *Machine) unrefuse(l *Lease) {
	for barred := range l.bars {
		barred.open()
	}
	clear(l.refused)
	clear(l.bars)
	l.rate = 0
}

// unrefuseTimed has those evaluated again that a lease barred and that may use it before a later instant.
func (m *Machine) unrefuseTimed(l *Lease) {
	for barred := range l.bars {
		if barred.timed {
			barred.open()
			delete(l.refused, barred)
			delete(l.bars, barred)
		}
	}
}
