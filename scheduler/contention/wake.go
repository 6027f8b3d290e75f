package contention

import (
	"maps"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Taken reports that capacity on these nodes was taken, or that nodes were lost: leases there are evaluated again.
func (m *Machine) Taken(nodes []int) { m.changed(nodes, nil) }

// changed has leases evaluated again if something in their place has changed, but not those that still await units.
func (m *Machine) changed(nodes []int, await []*Lease) {
	nodes = slices.Sorted(slices.Values(nodes))
	m.touched = append(m.touched, nodes...)
	for _, l := range m.leases {
		if l.Open || slices.Contains(await, l) { // an open one is placed anew when it may close
			continue
		}
		l.dirty = l.dirty || slices.ContainsFunc(nodes, l.holdsNode)
	}
}

// Freed reports unexpected capacity: capacity on these nodes returned, or nodes were added. There may be earlier places
// than the leased ones.
func (m *Machine) Freed(nodes []int) {
	m.Taken(nodes)
	m.queue.mayHavePlaces()
	m.openAll()
	m.doubtSweeps()
	m.forget()
	for _, l := range m.leases {
		l.dirty, l.searching, l.skipped = true, true, false
	}
}

// Ended reports that a unit has left its nodes; the next snapshot must not contain it. Leases on these nodes, and
// leases that may gain from the end, are evaluated again. A unit that ends when expected gives a firm lease elsewhere
// no earlier place.
func (m *Machine) Ended(u *Unit, now int64) {
	m.advance(now)
	nodes := nodesOf(u.Holds)
	m.RecountSweep(u.Sweep)
	for _, l := range m.leases {
		if l.touches(nodes) {
			l.overrun(u, now)
		}
	}
	at, _ := u.Expected(now-1, m.policy.MinRemaining)
	if m.policy.eager || u.End.Certainty == Never {
		m.Taken(nodes)
		if m.openAll(); at > now {
			m.early(at)
		}
		return
	}
	m.ended = now
	await := slices.DeleteFunc(slices.Clone(m.leases), func(l *Lease) bool { return !l.left(u, nodes) })
	m.changed(nodes, await)
	m.openFor(u, await)
	m.wake(u, at, await)
}

// early has leases look for an earlier place since a unit has ended that was expected to end at an instant: those with
// an instant that is no later. An entity that fits nowhere at the unit's instant does not fit before, with or without
// it.
func (m *Machine) early(instant int64) {
	for _, l := range m.leases {
		if !l.Firm || l.limit(m.now) <= instant {
			l.dirty, l.searching = true, true
		}
	}
}

// limit returns the last instant before which another place is of use: the lease's own, or the one promised before a
// closed lease was delayed, or the horizon if that keeps it open.
func (l *Lease) limit(now int64) int64 {
	switch {
	case !l.Open && l.Reason == Head:
		return min(l.Instant, l.Promised+1)
	case l.beyond(now):
		return now + l.discipline.horizon(l.Order, now)
	default:
		return l.Instant
	}
}

// openAll has all classes evaluated from the first on.
func (m *Machine) openAll() {
	m.queue.open()
	for _, l := range m.leases {
		clear(l.refused)
		clear(l.bars)
	}
}

// openFor opens the classes that have an entity which may fit now that a unit has ended. A class stays closed while its
// first entity still awaits units: the later entities of the class ask the same question, so none of them fits either.
func (m *Machine) openFor(u *Unit, await []*Lease) {
	for _, c := range m.queue.classes {
		opens := len(c.spots) == 0 || !c.full || c.lacks.add(u) || c.outdated(m)
		if opens && !slices.ContainsFunc(await, func(of *Lease) bool { return m.queue.spots[of.Owner].heads(c) }) {
			c.open()
		}
	}
	opened := func(c *class, _ struct{}) bool { return !c.full }
	for _, l := range m.leases {
		maps.DeleteFunc(l.refused, opened)
		maps.DeleteFunc(l.bars, opened)
	}
}

// outdated reports whether a full class is evaluated again whatever capacity has returned: a service has started or
// ended since it was found to have no place, or the driver may have missed something for so long.
func (c *class) outdated(m *Machine) bool {
	return c.noPlace && c.services != m.services || m.now >= c.lacks.at+m.policy.MinRemaining
}

// wake has those leases evaluated that may have another place or state since a unit has ended that was expected to end
// at an instant. The owner of each other one does not fit yet, and its place has not changed. Nor are those evaluated
// that still await units.
func (m *Machine) wake(u *Unit, instant int64, await []*Lease) {
	depends := false // a later lease depends on the places of the open ones before it
	for _, l := range slices.Backward(m.leases) {
		if !l.Reason.waits() {
			continue
		}
		gains := m.mayGain(l, u)
		searches := m.allows(l, instant)
		owner := m.queue.spots[l.Owner]
		concerned := searches || owner.leads()
		switch {
		case slices.Contains(await, l):
		case concerned && l.Open && l.Reason == Head && owner != nil:
			l.searching = l.searching || searches
			may := m.mayClose(l, m.now)
			moves := may && (depends || gains || m.closable(l))
			l.dirty, l.skipped = l.dirty || moves || !owner.class.full, may && !moves
			depends = depends || moves
		case concerned && (gains && (searches || !l.Firm) || m.unsettled(l, owner)):
			l.dirty, l.searching = true, l.searching || searches && gains
		case concerned:
			l.drifts = !l.Firm
		}
		l.hope(concerned, gains)
		depends = depends || !l.Open
	}
}

// allows reports whether the end of a unit that was expected at an instant, or another one of this round, allows an
// earlier place than the lease's.
func (m *Machine) allows(l *Lease, instant int64) bool {
	l.allowed = l.allowed || instant > m.now && (!l.Firm || l.limit(m.now) <= instant)
	return l.allowed
}

// hope notes that a closed lease may gain from a unit that has ended if earlier leases leave their places, but not now.
func (l *Lease) hope(concerned, gains bool) {
	l.hopes = l.hopes || concerned && !gains && !l.Open && (l.allowed || !l.Firm)
}

// unsettled reports whether a closed lease is evaluated even if it has no earlier place: its owner may fit, or an end
// in its place is overdue.
func (m *Machine) unsettled(l *Lease, owner *spot) bool {
	return owner == nil || l.Reason != Head || !owner.class.full || l.Firm && m.now >= l.overdue
}

// mayGain reports whether the owner of a lease may have an earlier place, or an open one a place that rests on firm
// ends.
func (m *Machine) mayGain(l *Lease, u *Unit) bool {
	fits := l.lacks.add(u)
	return fits || m.now >= l.lacks.at+m.policy.MinRemaining || !l.Open && l.lacks.until < l.soonest()
}

// recount updates the deficits of full classes and of leases, on the nodes on which something has changed.
func (m *Machine) recount(snap *Snapshot) {
	slices.Sort(m.touched)
	for _, node := range slices.Compact(m.touched) {
		if node < 0 || node >= snap.Ledger.Len() {
			continue
		}
		for _, c := range m.queue.classes {
			if len(c.spots) == 0 {
				continue
			}
			if c.full {
				c.lacks.recount(snap, node)
			}
			c.beside.recount(snap, node)
		}
		for _, l := range m.leases {
			l.lacks.recount(snap, node)
			l.spare.recount(snap, node)
		}
	}
	m.touched = m.touched[:0]
}

// closable reports whether an open lease may close although it rests on guesses, or has to be placed anew for its age.
func (m *Machine) closable(l *Lease) bool {
	return l.Firm || m.now >= l.evaluated+m.policy.MinRemaining || l.lacks.until < None || m.policy.MaxGuesses == 0 ||
		m.guesses(l) < m.policy.MaxGuesses
}

// soonest bounds the instant by which an earlier place of a closed lease has to be free.
func (l *Lease) soonest() int64 {
	if l.Firm {
		return min(l.Instant-1, l.Promised)
	}
	return l.Promised
}

// drift brings the instants up to date that rest on guesses, of leases that are not evaluated although units have
// ended. A guess is that of the end, not of the next evaluation: nothing else has changed since then, and guesses grow.
func (m *Machine) drift(snap *Snapshot) []Action {
	var out []Action
	then := *snap
	then.Now = min(snap.Now, m.ended)
	for _, l := range m.leases {
		owner := m.queue.spots[l.Owner]
		if !l.drifts || l.dirty || l.Open || owner == nil {
			l.drifts = false
			continue
		}
		l.drifts = false
		t := &turn{Machine: m, snap: &then, s: owner, earlier: m.earlier(&owner.Entity)}
		next, ok := t.look(&then, &owner.Entity, l.Holds, l.needs)
		if !ok {
			l.dirty = true
			continue
		}
		next.Within = l.Within
		l.punctual = !l.Late
		t.hold(l, next)
		l.drifted = true
		if owner.reason.Cause == OwnLease {
			owner.reason.At = l.Instant
		}
		out = append(out, t.out...)
	}
	return out
}

// wakeSkipped has the open leases evaluated after one that rests on guesses no more: one of them may close now.
func (m *Machine) wakeSkipped(first *Lease) {
	for _, l := range m.leases {
		if l.skipped && l.Order.Compare(first.Order) > 0 {
			l.dirty, l.skipped = true, false
		}
	}
}

// lacks counts the deficit of an entity that does not fit, after the departure of all units that it may evict.
func (t *turn) lacks() {
	e, d := &t.s.Entity, &t.s.class.lacks
	evicts := t.policy.evicts(e) && t.s.class.unpaid <= t.snap.Now
	if d.known && d.evicts == evicts &&
		t.snap.Now < d.counted+t.policy.MinRemaining { // counted for an entity before it
		d.at, d.until = t.snap.Now, t.snap.Now
		return
	}
	var gone []topology.Running
	if d.evicts = evicts; evicts {
		gone = t.scratch.gone[:0]
		for _, u := range t.snap.Running.Preemptible(e.Order.Priority) {
			gone = append(gone, topology.Running{Holds: u.Holds})
		}
		t.scratch.gone = gone
	}
	d.priority, d.until = e.Order.Priority, t.snap.Now
	d.count(t.Machine, t.snap, t.ask(t.snap, e), gone)
}

// lacksBeside reports whether the entity is known not to fit beside the leases that bind it.
func (t *turn) lacksBeside() bool {
	d := &t.s.class.beside
	return !t.policy.uncounted && d.holds(t.binding) && t.snap.Now < d.at+t.policy.MinRemaining
}

// countBeside counts the entity's deficit in the capacity left beside the leases that bind it.
func (t *turn) countBeside(left topology.Ledger) {
	d, snap := &t.s.class.beside, *t.snap
	snap.Ledger = left
	d.evicts, d.until = false, t.snap.Now
	d.binds(t.binding)
	d.count(t.Machine, &snap, t.ask(t.snap, &t.s.Entity), nil)
}

// lacksEarlier counts the deficit of a lease's owner for an earlier place; of an open lease, for a place that rests on
// firm ends.
func (t *turn) lacksEarlier(l *Lease) {
	d, e := &l.lacks, &t.s.Entity
	if l.lost { // each evaluation finds another place
		d.forget()
		return
	}
	instant, owed := l.soonest(), t.before(e)
	if l.Open {
		instant, owed = None, nil
	}
	if d.known && d.until >= instant && t.snap.Now < d.at+t.policy.MinRemaining {
		return
	}
	d.owed = append(d.owed[:0], owed...)
	d.priority, d.evicts, d.until = e.Order.Priority, t.policy.insists(e), instant
	d.count(t.Machine, t.snap, t.ask(t.snap, e), until(t.firmEnds(t.snap, e), instant))
}

// vacated forgets what later leases lack or spare beside a lease: it has left its place. Those that hoped for it are
// evaluated.
func (m *Machine) vacated(l *Lease) {
	for _, other := range m.leases {
		if other.Order.Compare(l.Order) <= 0 {
			continue
		}
		other.spare.forget()
		if other.lacks.paidBack(l) && other.hopes {
			other.dirty, other.searching = true, other.searching || other.allowed
		}
	}
}

// forget makes the deficits of all classes and leases unknown.
func (m *Machine) forget() {
	for _, c := range m.queue.classes {
		c.lacks.forget()
		c.beside.forget()
	}
	m.forgetRooms()
}

// forgetRooms makes all that was counted beside earlier leases unknown.
func (m *Machine) forgetRooms() {
	for _, l := range m.leases {
		l.lacks.forget()
		l.spare.forget()
	}
}

// watch notes when the first of the known ends in the place is overdue.
func (t *turn) watch(l *Lease) {
	l.overdue = None
	for _, node := range l.Nodes {
		for _, u := range t.snap.Running.On(node) {
			l.overrun(u, t.snap.Now)
			if timed := u.End.Certainty != Unknown && u.End.Certainty != Never; timed && u.End.At > t.snap.Now {
				l.overdue = min(l.overdue, u.End.At)
			}
		}
	}
}
