package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// prospect is a place and when it is expected to be free.
type prospect struct {
	Holds  []topology.Held
	Within topology.Domain
	// Instant is not before the time of the evaluation. Firm says that it rests on firm ends only.
	Instant int64
	Firm    bool
	// Lost says that nodes of the place cannot be used, or do not become free.
	Lost bool
	// ToCome is the idle in accelerator-seconds until the instant if no other entity may use the place.
	ToCome int64
}

// take gives the lease a place.
func (l *Lease) take(p prospect, now int64) {
	l.evaluated = now
	l.settle(p.Holds)
	l.broken, l.lost = false, p.Lost
	l.Within = p.Within
	if p.Instant != l.Instant {
		l.version++
	}
	l.Instant, l.Firm, l.toCome, l.Risk = p.Instant, p.Firm, p.ToCome, 0
}

// lease gives an entity without room the earliest place beside earlier leases, or retains its present one (rule 4). It
// reports whether the entity no longer waits for one domain (rule 15), and has to be evaluated again.
func (t *turn) lease(reason Wait) (again bool) {
	e := &t.s.Entity
	l := t.Lease(e.ID)
	if l == nil && (e.Accelerators == 0 || e.Order.Grows || t.policy.MaxLeases == 0 || !t.mayLease(e.Order)) {
		t.wait(reason)
		return false
	}
	if l != nil && !l.Reason.waits() {
		t.wait(reason) // its place is held for another reason
		return false
	}
	if l == nil && t.s.class.noPlace && t.s.class.services == t.snap.Running.services {
		if t.parts() {
			return true
		}
		t.wait(t.withoutPlace(reason))
		return false
	}
	if l != nil && l.Open && l.Reason == Head && (l.skipped || !t.mayClose(l, t.snap.Now)) {
		if reason.Cause == NoRoom {
			reason.Cause, reason.At = OwnLease, l.Instant
		}
		t.wait(reason)
		return false
	}
	next, ok := t.prospects(l, e)
	if (!ok || t.far(next)) && t.parts() {
		return true
	}
	if !ok {
		t.emit(t.drop(WhyNoEnd)...)
		t.noPlace()
		t.wait(t.withoutPlace(reason))
		return false
	}
	t.s.class.noPlace = false
	t.hold(l, next)
	if l = t.Lease(e.ID); l != nil {
		t.lacksEarlier(l)
	}
	if reason.Cause == NoRoom {
		reason.Cause, reason.At = OwnLease, next.Instant
	}
	t.wait(reason)
	return false
}

// mayClose reports whether an open lease may close if it is placed anew. An open lease binds no entity, so that another
// place is of no use before. Beyond the horizon, only an end that was expected beyond it, the end of another lease, or
// time brings a place within it.
func (m *Machine) mayClose(l *Lease, now int64) bool {
	if m.blocked || !l.discipline.suffices(l.Budget, l.Accelerators, 0, now) {
		return false
	}
	near := l.Firm && l.limit(now) == l.Instant
	return near || l.searching || now >= l.evaluated+m.policy.MinRemaining
}

// noPlace notes that no end makes room for the entity's question.
func (t *turn) noPlace() { t.s.class.noPlace, t.s.class.services = true, t.snap.Running.services }

// withoutPlace is the reason of an entity for which no place becomes free: if earlier entities lease some, their leases
// end first.
func (t *turn) withoutPlace(reason Wait) Wait {
	if reason.Cause != NoRoom {
		return reason
	}
	if reason.Cause = NoEnd; len(t.earlier) > 0 {
		reason.Cause, reason.Of = OtherLease, owners(t.earlier)
	}
	return reason
}

// hold gives the entity the place, with the lease that it has or a new one.
func (t *turn) hold(l *Lease, next prospect) {
	if l != nil && l.Reason == Preemption {
		t.emit(t.release(l, WhyVictims)...)
		l = nil
	}
	if l == nil {
		l = t.newLease(Head, nil, next.Within)
		l.take(next, t.snap.Now)
		t.watch(l)
		l.Promised = l.Instant
		l.Open = t.opens(l, t.snap.Now)
		if l.Open {
			l.discipline.open(&l.Budget, t.snap.Now)
		}
		t.emit(t.grant(l)...)
		t.openLater(l)
		return
	}
	moves := !slices.Equal(l.Nodes, nodesOf(next.Holds))
	same := !moves && (l.Open || l.Firm == next.Firm && (!l.Firm || l.Instant == next.Instant)) // guesses drift
	risk, instant, guessed := l.Risk, l.Instant, !l.Open && !l.Firm
	place := l.needs
	l.take(next, t.snap.Now)
	l.searching, l.recheck = false, None
	if !moves {
		l.Risk = risk
	} else if l.drifted && l.punctual {
		l.Late = false // no unit of this place was late
	}
	t.watch(l)
	if !slices.EqualFunc(place, l.needs, need.equal) {
		t.vacated(l)
	}
	switch { // others may use it now
	case moves:
		t.queue.mayHavePlaces()
		t.unrefuse(l)
	case t.credits(l, instant):
		t.unrefuse(l)
	case l.Instant > instant:
		t.unrefuseTimed(l)
	}
	turned := t.openOrClose(l)
	if guessed && l.Firm {
		t.wakeSkipped(l)
	}
	if !same || turned {
		t.markOverlappingDirty(l)
		t.emit(Leased{l})
	}
	t.openLater(l)
}

// credits reports whether a later instant than before leaves others more of the place: a unit there is known to end in
// between, and gives back capacity that the owner needs.
func (t *turn) credits(l *Lease, before int64) bool {
	for _, node := range l.Nodes {
		for _, u := range t.snap.Running.On(node) {
			if u.End.firm() && u.End.At > before && u.End.At <= l.Instant {
				return true
			}
		}
	}
	return false
}

// prospects returns the place that the entity should have: that of its closed lease if it can still be had, unless
// there is an earlier one that rests on firm ends; else the earliest.
func (t *turn) prospects(l *Lease, e *Entity) (prospect, bool) {
	if l == nil || l.Open || l.Reason != Head || l.broken {
		return t.reserve(t.snap, e, t.ask(t.snap, e))
	}
	kept, ok := t.look(t.snap, e, l.Holds, l.needs)
	if !ok {
		return t.reserve(t.snap, e, t.ask(t.snap, e))
	}
	kept.Within = l.Within
	delayed := kept.Instant > max(l.Instant, l.Promised) // others have taken it, or a unit there is overdue
	if l.searching || l.allowed || delayed || !kept.Firm {
		earlier := until(t.firmEnds(t.snap, e), min(kept.Instant-1, l.Promised))
		if next, found := t.reserveBy(t.snap, e, t.ask(t.snap, e), earlier); found && next.Instant < kept.Instant {
			return next, true
		}
	}
	return kept, true
}

// reserve finds the earliest place for an owner beside the leases of earlier entities. A place that rests on firm ends
// is preferred to one that rests on guesses, unless it takes more than twice as long: a guess is a median.
func (t *turn) reserve(snap *Snapshot, owner *Entity, ask Ask) (prospect, bool) {
	ends := t.ends(snap, owner)
	guess, ok := t.reserveBy(snap, owner, ask, ends)
	if !ok || guess.Firm {
		return guess, ok
	}
	firm, found := t.reserveBy(snap, owner, ask, t.firmEnds(snap, owner))
	if found && firm.Instant-snap.Now <= 2*(guess.Instant-snap.Now) {
		return firm, true
	}
	return guess, true
}

// before returns the leases of earlier entities than an owner.
func (t *turn) before(owner *Entity) []*Lease {
	if owner == &t.s.Entity {
		return t.earlier
	}
	return t.Machine.earlier(owner)
}

// until returns those that end until an instant, of units in the order of their ends.
func until(ends []topology.Running, instant int64) []topology.Running {
	n, _ := slices.BinarySearchFunc(ends, instant, func(r topology.Running, instant int64) int {
		if r.End <= instant {
			return -1
		}
		return 1
	})
	return ends[:n]
}

// reserveBy finds the earliest place if these units end.
func (t *turn) reserveBy(snap *Snapshot, owner *Entity, ask Ask, ends []topology.Running) (prospect, bool) {
	leases := t.before(owner)
	ledger, ends := t.indebted(snap, leases, ends)
	r, ok := snap.placer().Reserve(ledger, without(snap, ask, nil), ends)
	r.Discard()
	if len(leases) > 0 {
		ledger.Discard() // it is not the snapshot's own
	}
	if !ok {
		return prospect{}, false
	}
	holds := holdsOf(ask.Fewest(), r.Placement)
	out, ok := t.look(snap, owner, holds, needsOf(holds))
	if !ok {
		out = prospect{Holds: holds, Instant: max(r.At, snap.Now), Lost: true}
	}
	out.Within = r.Placement.Within
	return out, true
}

// firmEnds returns the units with a firm end, and those that the owner may evict.
func (t *turn) firmEnds(snap *Snapshot, owner *Entity) []topology.Running {
	if t.evictsNone(snap, owner) {
		return snap.Running.firm(snap.Now)
	}
	return t.endsOf(snap, owner, func(x Expectation) bool { return x.Firm })
}

// ends returns the running units by expected end, for an owner: units that it may evict when it needs their place end
// now, services do not end.
func (t *turn) ends(snap *Snapshot, owner *Entity) []topology.Running {
	if ends := snap.Running.firm(
		snap.Now,
	); len(ends) == snap.Running.mortal() &&
		t.evictsNone(snap, owner) { // all ends are firm
		return ends
	}
	return t.endsOf(snap, owner, func(Expectation) bool { return true })
}

// evictsNone reports whether an owner may evict none of the units that run, and is none of them.
func (t *turn) evictsNone(snap *Snapshot, owner *Entity) bool {
	return (!t.policy.insists(owner) || len(snap.Running.Preemptible(owner.Order.Priority)) == 0) &&
		snap.Running.Get(owner.ID) == nil
}

func (t *turn) endsOf(snap *Snapshot, owner *Entity, meant func(Expectation) bool) []topology.Running {
	list := snap.Running.Expected(snap.Now, t.policy.MinRemaining)
	now, later := []topology.Running(nil), make([]topology.Running, 0, len(list))
	for _, x := range list {
		switch {
		case x.Unit.gang() == owner.ID: // its surplus ends with it
		case t.evictable(x.Unit, owner):
			now = append(now, topology.Running{Name: string(x.Unit.ID), Holds: x.Unit.Holds, End: snap.Now})
		case meant(x):
			later = append(later, topology.Running{Name: string(x.Unit.ID), Holds: x.Unit.Holds, End: x.At})
		}
	}
	return append(now, later...)
}

// evictable reports whether an owner may evict a unit when it needs its place. One that leaves already does not leave
// earlier.
func (t *turn) evictable(u *Unit, owner *Entity) bool {
	return t.policy.insists(owner) && u.Preemptible && !u.Leaving && u.Priority < owner.Order.Priority
}
