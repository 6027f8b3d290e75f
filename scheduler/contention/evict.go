package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// preempt has units evicted if the entity then starts (basic rule 6). It reports whether that ends the turn.
func (t *turn) preempt(reason Wait) bool {
	e := &t.s.Entity
	if !t.policy.evicts(e) {
		return false
	}
	if l := t.Lease(e.ID); l != nil && l.Reason == Preemption && t.leaving(l) {
		l.dirty = false
		l.await(t.snap, func(u *Unit) bool { return t.leaves(u, l) })
		t.wait(Wait{Cause: Victims, Refusal: reason.Refusal, Of: t.leavingOn(l), At: l.Instant})
		return true
	}
	units := t.victims()
	if len(units) == 0 || t.s.class.unpaid > t.snap.Now {
		return false
	}
	asked := t.ask(t.snap, e)
	asked = without(t.snap, Ask{Gang: asked.Fewest(), Needed: asked.Needed}, t.binding)
	found, balance, ok := t.chosen(asked, units)
	if !ok || !t.policy.insists(e) && !balance.Pays() {
		t.bar(t.binding)
		if ok {
			t.queue.putOff(t.s.class, balance, t.snap.Now+t.policy.MinRemaining)
		}
		return false
	}
	var evict, all []ID
	instant := t.snap.Now
	for _, u := range found.victims {
		all = append(all, u.ID)
		if !u.Leaving {
			evict = append(evict, u.ID)
		} else if at, _ := u.Expected(t.snap.Now, 0); at != None {
			instant = max(instant, at)
		}
	}
	if own := t.Lease(e.ID); own != nil { // also one of lost members: their places are in the new one
		t.emit(t.release(own, WhyPreempts)...)
	}
	l := t.newLease(Preemption, holdsOf(found.gang, found.placement), found.placement.Within)
	l.Instant, l.Firm = instant, true
	l.await(t.snap, func(u *Unit) bool { return slices.Contains(all, u.ID) })
	t.emit(t.grant(l)...)
	if len(evict) > 0 {
		l.evicted = t.evict(
			Preempted{
				ID:        e.ID,
				Victims:   evict,
				Cost:      found.cost,
				Optimal:   found.optimal,
				Balance:   balance,
				Placement: found.placement,
			},
		)
	}
	t.wait(Wait{Cause: Victims, Refusal: reason.Refusal, Of: all, At: instant})
	return true
}

// chosen chooses victims among units, and weighs their eviction for an entity that does not insist; false if none
// helps. The search is exact, so units that are too dear are left out of it, unless a disruption budget is exceeded
// without them.
func (t *turn) chosen(asked Ask, units []*Unit) (choice, Balance, bool) {
	restart := t.policy.restart(&t.s.Entity)
	cheap, most := t.affordable(units)
	if len(cheap) == 0 {
		return choice{}, most, true
	}
	found, ok := chooseParts(t.snap, asked, cheap, restart)
	ok = ok && len(found.victims) > 0
	if len(cheap) < len(units) {
		if !ok {
			return choice{}, most, true
		}
		if exceeded(t.snap.Budgets, found.victims...) {
			found, ok = chooseParts(t.snap, asked, units, restart)
			ok = ok && len(found.victims) > 0
		}
	}
	if !ok || t.policy.insists(&t.s.Entity) {
		return found, Balance{}, ok
	}
	return found, t.balance(found), true
}

// clear evicts the units that use the owner's place by basic rule 3b, so that they have left at the instant.
func (t *turn) clear() {
	l := t.Lease(t.s.ID)
	if l == nil {
		return
	}
	l.clears = None
	if l.Open || l.Reason != Head || !l.Firm || slices.ContainsFunc(l.Nodes, t.misses) {
		return
	}
	var leave []ID
	claims, _ := t.claims(t.snap, &t.s.Entity, l.needs)
	for _, n := range l.needs {
		for _, u := range t.inTheWay(l, need{n.node, claims.of[n.node]}) {
			if at := l.Instant - u.Grace; at > t.snap.Now {
				l.clears = min(l.clears, at)
			} else {
				leave = append(leave, u.ID)
			}
		}
	}
	if slices.Sort(leave); len(leave) > 0 {
		t.evict(Preempted{ID: t.s.ID, Victims: slices.Compact(leave)})
	}
}

// misses reports whether a node is away: no entity starts there, and no unit is evicted for one.
func (t *turn) misses(node int) bool {
	_, away := t.snap.away(node)
	return away
}

// evict has units evicted, and remembers and returns that if the policy has a price, also if this entity has none: only
// Terms.MaxPerDay reads it. The units count as leaving from
// then on, so that others may fit beside the leases there that did not before.
func (t *turn) evict(p Preempted) evicted {
	p.Victims = t.withParts(p.Victims)
	t.emit(p)
	var noted evicted
	if len(t.policy.Terms.Prices) > 0 {
		noted = t.evictions.note(t.running(p.Victims), t.snap.Now)
	}
	t.forget() // they end earlier than was counted on
	for _, l := range t.leases {
		t.unrefuse(l)
	}
	return noted
}

// inTheWay returns the units on a leased node that have to be evicted so that the owner's part of it is free beside
// earlier leases at the instant, the lowest priority first; none if there is room beside them.
func (t *turn) inTheWay(l *Lease, n need) []*Unit {
	free := slices.Clone(t.snap.Ledger.Free[n.node])
	var stay, out []*Unit
	for _, u := range t.snap.Running.On(n.node) {
		at, firm := u.Expected(t.snap.Now, t.policy.MinRemaining)
		switch {
		case u.Leaving || firm && at <= l.Instant:
			free = sum(free, onNode(u.Holds, n.node))
		case t.evictable(u, &t.s.Entity):
			stay = append(stay, u)
		}
	}
	slices.SortFunc(stay, byGang)
	for _, u := range stay {
		if fitsIn(free, n.demand) {
			break
		}
		free, out = sum(free, onNode(u.Holds, n.node)), append(out, u)
	}
	return out
}

// leaving reports whether the place of a preemption lease only waits for units that leave, or end by its instant.
func (t *turn) leaving(l *Lease) bool {
	waiting := false
	for node, demand := range demandOn(l.Holds) {
		free := t.snap.Ledger.Free[node]
		if t.misses(node) { // in some ledgers it still has something free
			free = make(topology.Capacity, len(free))
		}
		if fitsIn(free, demand) {
			continue
		}
		for _, u := range t.snap.Running.On(node) {
			if t.leaves(u, l) {
				free = sum(slices.Clone(free), onNode(u.Holds, node))
			}
		}
		if !fitsIn(free, demand) {
			return false
		}
		waiting = true
	}
	return waiting
}

// leaves reports whether a unit leaves, or ends by the instant of a lease.
func (t *turn) leaves(u *Unit, l *Lease) bool {
	return u.Leaving || u.End.firm() && u.End.At > t.snap.Now && u.End.At <= l.Instant
}

// leavingOn returns the units that leave the place of a lease, by ID.
func (t *turn) leavingOn(l *Lease) []ID {
	var out []ID
	for _, node := range nodesOf(l.Holds) {
		for _, u := range t.snap.Running.On(node) {
			if u.Leaving {
				out = append(out, u.ID)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// running returns the units of these names.
func (t *turn) running(ids []ID) []*Unit {
	out := make([]*Unit, 0, len(ids))
	for _, id := range ids {
		if u := t.snap.Running.Get(id); u != nil {
			out = append(out, u)
		}
	}
	return out
}
