package contention

import (
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// turn is one evaluation of one entity.
type turn struct {
	*Machine
	w *World
	s *spot
	// binding are the leases that bind the entity, earlier all of earlier entities.
	binding, earlier []*Lease
	out              []Action
}

// Turn evaluates an entity: it is placed, preempts, gets or keeps a lease, or waits. An entity that is not in the queue has no
// turn.
func (m *Machine) Turn(id ID, w *World) []Action {
	out := m.Observe(w)
	s := m.queue.spots[id]
	if s == nil {
		return out
	}
	if l := m.Lease(id); l != nil {
		l.dirty = false
	}
	t := &turn{
		Machine: m, w: w, s: s, binding: m.binding(&s.Entity, w.Now), earlier: m.earlier(&s.Entity), out: out,
	}
	t.decide()
	return t.out
}

func (t *turn) emit(actions ...Action) { t.out = append(t.out, actions...) }

// wait ends the turn with a reason.
func (t *turn) wait(reason Wait) {
	if l := t.s.lane; l.unpaid > t.w.Now {
		reason.Unpaid = &l.balance
	}
	t.s.reason = reason
	t.emit(Waits{t.s.ID, reason})
}

func (t *turn) decide() {
	e := &t.s.Entity
	if t.policy.Strict && len(t.earlier) > 0 {
		t.s.lane.closed = 0
		t.wait(Wait{Cause: OtherLease, Of: owners(t.earlier), At: None})
		return
	}
	own := t.w.placer().Place(t.w.Ledger, e.Ask)
	if own.Refusal != nil && own.Refusal.Wrong != nil {
		t.s.lane.full = true
		t.s.lane.lacks.forget()
		t.emit(t.drop(WhyWrong)...)
		t.noPlace()
		t.wait(Wait{Cause: WrongQuestion, Refusal: own.Refusal, At: None})
		return
	}
	reason := Wait{Cause: NoRoom, Refusal: own.Refusal, At: None}
	if own.Refusal == nil {
		var refusing []*Lease
		if refusing = t.place(own); refusing == nil {
			return
		}
		reason = Wait{Cause: OtherLease, Of: owners(refusing), At: firstInstant(refusing)}
		t.s.lane.closed = min(t.s.lane.closed, t.s.runTime())
		t.refuse(refusing)
	} else {
		t.s.lane.full = true
		t.lacks()
	}
	if !t.preempt(reason) {
		t.lease(reason)
		t.clear()
	}
}

// place lets the entity start by rules 2 and 3 if it can. It returns nil, or the leases that refuse it.
func (t *turn) place(own Answer) []*Lease {
	touched := touching(t.binding, own.Placement.Nodes)
	if len(touched) == 0 {
		t.start(own)
		return nil
	}
	left := t.beside(t.w, t.binding)
	if covers(left.Free, holdsOf(own.Gang, own.Placement)) {
		t.start(own)
		return nil
	}
	other := t.w.placer().Place(left, t.s.Ask)
	left.Discard()
	if other.Refusal == nil {
		t.start(other)
		return nil
	}
	if len(touched) == 1 && t.moveAside(touched[0], own) {
		t.start(own)
		return nil
	}
	return touched
}

// refuse notes that the entity fits, but not beside the leases that bind it. Those that are given are at its best place.
func (t *turn) refuse(touched []*Lease) {
	t.bar()
	for _, l := range touched {
		l.refused[t.s.lane] = struct{}{}
	}
}

// bar notes that the entity may fit, or find victims, without one of the leases that bind it.
func (t *turn) bar() {
	for _, l := range t.binding {
		if l.bars == nil {
			l.bars, l.refused = make(map[*lane]struct{}), make(map[*lane]struct{})
		}
		l.bars[t.s.lane] = struct{}{}
	}
}

func (t *turn) start(a Answer) {
	passed := touching(t.earlier, a.Placement.Nodes)
	for _, l := range passed {
		if !l.Open && t.endsBefore(&t.s.Entity, l, t.w.Now) {
			l.Risk += t.s.Overrun
		}
	}
	t.emit(Placed{t.s.ID, a.Gang, a.Placement, owners(passed)})
}

// moveAside gives a lease another place at the same instant, beside the entity at its own best place. The instant has to rest on
// firm ends: beside guesses there is always another place that looks as early. It must not rest on evictions either: a later entity
// would start at the cost of a unit that runs, or of itself.
func (t *turn) moveAside(l *Lease, own Answer) bool {
	if l.Reason != Head || !l.Firm {
		return false
	}
	ask, ok := t.w.owner(l)
	if !ok {
		return false
	}
	then := *t.w
	then.Ledger = t.taken(own)
	owner := t.queue.spots[l.Owner]
	if owner == nil {
		return false
	}
	defer then.Ledger.Discard()
	patient := owner.Entity
	patient.NeverPreempts = true
	next, ok := t.reserveBy(&then, &patient, ask, until(t.firmEnds(&then, &patient), l.Instant))
	if !ok || !next.Firm || next.Instant > l.Instant {
		return false
	}
	l.take(next, t.w.Now)
	t.watch(l)
	l.clears = None // its owner evicts no unit there
	t.queue.mayHavePlaces()
	t.unrefuse(l)
	t.displace(l)
	t.emit(Leased{l})
	return true
}

// taken returns the ledger after the entity has taken its best place. It holds until the next call.
func (t *turn) taken(own Answer) topology.Ledger {
	out := &t.scratch.taken
	out.begin(t.w.Ledger.Free, own.Placement.Nodes)
	for rank, node := range own.Placement.Nodes {
		m := own.Gang.Members[rank]
		if m.Placed {
			continue
		}
		left := out.own(node)
		for r := range left {
			left[r] -= at(own.Gang.Shapes[m.Shape].Demand, r)
		}
	}
	return t.w.Ledger.Differing(out.free, out.nodes)
}

// drop releases the entity's own lease, if it waits for one.
func (t *turn) drop(why string) []Action {
	l := t.Lease(t.s.ID)
	if l == nil || !l.Reason.waits() {
		return nil
	}
	return t.release(l, why)
}

func touching(leases []*Lease, nodes []int) []*Lease {
	var out []*Lease
	for _, l := range leases {
		if l.touches(nodes) {
			out = append(out, l)
		}
	}
	return out
}

func owners(leases []*Lease) []ID {
	var out []ID
	for _, l := range leases {
		out = append(out, l.Owner)
	}
	return out
}

// firstInstant returns the first instant at which one of the leases is expected to be used.
func firstInstant(leases []*Lease) int64 {
	first := int64(math.MaxInt64)
	for _, l := range leases {
		first = min(first, l.Instant)
	}
	return first
}

// preempt has units evicted if the entity then starts (rule 6). It reports whether that ends the turn.
func (t *turn) preempt(reason Wait) bool {
	e := &t.s.Entity
	if !t.policy.evicts(e) {
		return false
	}
	if l := t.Lease(e.ID); l != nil && l.Reason == Preemption && t.leaving(l) {
		l.dirty = false
		l.await(t.w, func(u *Unit) bool { return t.leaves(u, l) })
		t.wait(Wait{Cause: Victims, Refusal: reason.Refusal, Of: t.leavingOn(l), At: l.Instant})
		return true
	}
	units := t.victims()
	if len(units) == 0 || t.s.lane.unpaid > t.w.Now {
		return false
	}
	asked := without(t.w, Ask{Gang: e.Ask.Fewest(), Needed: e.Ask.Needed}, t.binding)
	found, ok := choose(t.w, asked, units, t.policy.restart(e))
	if !ok || len(found.victims) == 0 {
		t.bar()
		return false
	}
	balance := t.balance(found)
	if !t.policy.insists(e) && !balance.Pays() {
		t.bar()
		t.s.lane.unpaid, t.s.lane.balance = t.w.Now+t.policy.MinRemaining, balance
		return false
	}
	var evict, all []ID
	instant := t.w.Now
	for _, u := range found.victims {
		all = append(all, u.ID)
		if !u.Leaving {
			evict = append(evict, u.ID)
		} else if at, _ := u.Expected(t.w.Now, 0); at != None {
			instant = max(instant, at)
		}
	}
	if own := t.Lease(e.ID); own != nil { // also one of lost members: their places are in the new one
		t.emit(t.release(own, WhyPreempts)...)
	}
	l := t.newLease(Preemption, holdsOf(found.gang, found.placement), found.placement.Within)
	l.Instant, l.Firm = instant, true
	l.await(t.w, func(u *Unit) bool { return slices.Contains(all, u.ID) })
	t.emit(t.grant(l)...)
	if len(evict) > 0 {
		t.evict(
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

// clear evicts the units that use the owner's place by rule 3b, so that they have left at the instant.
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
	claims, _ := t.claims(t.w, &t.s.Entity, l.needs)
	for _, n := range l.needs {
		for _, u := range t.inTheWay(l, need{n.node, claims.of[n.node]}) {
			if at := l.Instant - u.Grace; at > t.w.Now {
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
	_, away := t.w.away(node)
	return away
}

// evict has units evicted. They are known to leave from then on, so that others may fit beside the leases there that did not before.
func (t *turn) evict(p Preempted) {
	t.emit(p)
	t.evictions.note(p.Victims, t.w.Now)
	t.forget() // they end earlier than was counted on
	for _, l := range t.leases {
		t.unrefuse(l)
	}
}

// inTheWay returns the units on a leased node that have to be evicted so that the owner's part of it is free beside earlier leases at
// the instant, the lowest priority first; none if there is room beside them.
func (t *turn) inTheWay(l *Lease, n need) []*Unit {
	free := slices.Clone(t.w.Ledger.Free[n.node])
	var stay, out []*Unit
	for _, u := range t.w.Running.On(n.node) {
		at, firm := u.Expected(t.w.Now, t.policy.MinRemaining)
		switch {
		case u.Leaving || firm && at <= l.Instant:
			free = sum(free, onNode(u.Holds, n.node))
		case t.evictable(u, &t.s.Entity):
			stay = append(stay, u)
		}
	}
	slices.SortFunc(stay, byPriority)
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
		free := t.w.Ledger.Free[node]
		if t.misses(node) { // in some ledgers it still has something free
			free = make(topology.Capacity, len(free))
		}
		if fitsIn(free, demand) {
			continue
		}
		for _, u := range t.w.Running.On(node) {
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
	return u.Leaving || u.End.firm() && u.End.At > t.w.Now && u.End.At <= l.Instant
}

// leavingOn returns the units that leave the place of a lease, by ID.
func (t *turn) leavingOn(l *Lease) []ID {
	var out []ID
	for _, node := range nodesOf(l.Holds) {
		for _, u := range t.w.Running.On(node) {
			if u.Leaving {
				out = append(out, u.ID)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// newLease returns a closed lease of the entity on a place.
func (t *turn) newLease(reason Reason, holds []topology.Held, within topology.Domain) *Lease {
	e := &t.s.Entity
	l := &Lease{
		Owner: e.ID, Order: e.Order, Reason: reason, Within: within,
		Expiry: None, Accelerators: e.Accelerators, ask: e.Ask, preempts: t.policy.insists(e),
		evaluated: t.w.Now, Since: t.w.Now, recheck: None, clears: None, Budget: t.policy.newBudget(e.Accelerators),
	}
	l.settle(holds)
	if a, ok := t.away[e.ID]; ok && a.Question == e.lane().question {
		l.Budget = a.Budget
	}
	return l
}
