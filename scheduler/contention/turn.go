package contention

import (
	"math"

	"github.com/lockstep-project/lockstep/topology"
)

// turn is one evaluation of one entity.
type turn struct {
	*Machine
	snap *Snapshot
	s    *spot
	// binding are the leases that bind the entity, earlier all of earlier entities.
	binding, earlier []*Lease
	out              []Action
}

// Turn evaluates an entity: it is placed, preempts, gets or retains a lease, or waits. An entity that is not in the
// queue has no turn.
func (m *Machine) Turn(id ID, snap *Snapshot) []Action {
	out := m.Observe(snap)
	s := m.queue.spots[id]
	if s == nil {
		return out
	}
	if l := m.Lease(id); l != nil {
		l.dirty = false
	}
	t := &turn{
		Machine: m, snap: snap, s: s, binding: m.binding(&s.Entity, snap.Now), earlier: m.earlier(&s.Entity), out: out,
	}
	for _, l := range t.earlier { // their turn of this round is over
		l.allowed, l.hopes = false, false
	}
	if m.takesTurn(s); s.held {
		t.heldTurn()
		return t.out
	}
	t.decide()
	return t.out
}

func (t *turn) emit(actions ...Action) { t.out = append(t.out, actions...) }

// wait ends the turn with a reason.
func (t *turn) wait(reason Wait) {
	if c := t.s.class; c.unpaid > t.snap.Now {
		unpaid := c.balance
		reason.Unpaid = &unpaid
	}
	if level := t.within(t.snap, &t.s.Entity); level != t.s.Ask.Gang.Required {
		reason.Together = level
	}
	t.s.reason = reason
	t.emit(Waits{t.s.ID, reason})
	t.passTurn(t.s)
}

// decide is one evaluation. In this order, the first that applies ends the turn: an earlier entity of a strict
// discipline has a lease; an elastic gang starts with fewer members; the question is wrong; members that would join a
// gang cost more than they win; there is a place that no lease refuses; units are evicted. An entity without a place
// then gets a lease, or evicts the units that use it by basic rule 3b. It is evaluated once more if it no longer waits for
// one domain.
func (t *turn) decide() {
	e := &t.s.Entity
	if t.waitForStrict() {
		return
	}
	own := t.snap.placer().Place(t.snap.Ledger, t.ask(t.snap, e))
	if own.Refusal != nil && t.startWithFewer() {
		return
	}
	if own.Refusal != nil && own.Refusal.Wrong != nil {
		t.s.class.full = true
		t.s.class.lacks.forget()
		t.emit(t.drop(WhyWrong)...)
		t.noPlace()
		t.wait(Wait{Cause: WrongQuestion, Refusal: own.Refusal, At: None})
		return
	}
	reason := Wait{Cause: NoRoom, Refusal: own.Refusal, At: None}
	if own.Refusal == nil && t.waitIfGrowthCosts(own) {
		return
	}
	if own.Refusal == nil {
		var refusing []*Lease
		if refusing = t.place(own); refusing == nil {
			return
		}
		reason = Wait{Cause: OtherLease, Of: owners(refusing), At: firstInstant(refusing)}
		t.s.class.closed = min(t.s.class.closed, t.s.runTime())
		t.refuse(refusing)
	} else {
		t.s.class.full = true
		if t.lacks(); t.waitsForAll(e) { // fewer members may do with the capacity that the next end frees
			t.s.class.lacks.forget()
		}
	}
	switch {
	case t.preempt(reason):
	case t.lease(reason):
		t.decide()
	default:
		t.clear()
	}
}

// waitForStrict ends the turn if an earlier entity of a strict discipline has a lease, and reports whether it did: this
// one neither starts nor gets a lease of its own until that one has ended.
func (t *turn) waitForStrict() bool {
	var strict []*Lease
	for _, l := range t.earlier {
		if l.strict() {
			strict = append(strict, l)
		}
	}
	if len(strict) == 0 {
		return false
	}
	t.bar(strict)
	t.s.class.closed = 0
	t.noPlace()
	t.wait(Wait{Cause: OtherLease, Of: owners(strict), At: None})
	return true
}

// place lets the entity start by basic rules 2 and 3 if it can. It returns nil, or the leases that refuse it.
func (t *turn) place(own Answer) []*Lease {
	touched := touching(t.binding, own.Placement.Nodes)
	if len(touched) == 0 {
		t.start(own)
		return nil
	}
	if !t.lacksBeside() {
		left := t.beside(t.snap, t.binding)
		if covers(left.Free, holdsOf(own.Gang, own.Placement)) {
			t.start(own)
			return nil
		}
		other := t.snap.placer().Place(left, t.ask(t.snap, &t.s.Entity))
		left.Discard()
		if other.Refusal == nil {
			t.start(other)
			return nil
		}
		t.countBeside(left)
	}
	if len(touched) == 1 && t.moveAside(touched[0], own) {
		t.start(own)
		return nil
	}
	return touched
}

// refuse notes that the entity fits, but not beside the leases that bind it. Those that are given are at its best
// place.
func (t *turn) refuse(touched []*Lease) {
	t.bar(t.binding)
	for _, l := range touched {
		l.refused[t.s.class] = struct{}{}
	}
}

// bar notes that the entity may fit, or find victims, without one of the leases.
func (t *turn) bar(leases []*Lease) {
	for _, l := range leases {
		if l.bars == nil {
			l.bars, l.refused = make(map[*class]struct{}), make(map[*class]struct{})
		}
		l.bars[t.s.class] = struct{}{}
	}
}

func (t *turn) start(a Answer) {
	passed := touching(t.earlier, a.Placement.Nodes)
	for _, l := range passed {
		if !l.Open && t.endsBefore(&t.s.Entity, l, t.snap.Now) {
			l.Risk += t.s.Overrun
		}
	}
	t.emit(Placed{t.s.ID, a.Gang, a.Placement, owners(passed)})
}

// moveAside gives a lease another place at the same instant, beside the entity at its own best place. The instant has
// to rest on firm ends: beside guesses there is always another place that looks as early. It must not rest on evictions
// either: a later entity would start at the cost of a unit that runs, or of itself.
func (t *turn) moveAside(l *Lease, own Answer) bool {
	if l.Reason != Head || !l.Firm {
		return false
	}
	ask, ok := t.snap.owner(l)
	if !ok {
		return false
	}
	owner := t.queue.spots[l.Owner]
	if owner == nil {
		return false
	}
	asks := owner.Entity
	asks.Ask = ask // in these coordinates
	ask = t.ask(t.snap, &asks)
	patient := owner.Entity
	patient.NeverPreempts = true
	ends := until(t.firmEnds(t.snap, &patient), l.Instant)
	if !t.spares(l, ask, own, t.before(&patient), ends) {
		return false
	}
	then := *t.snap
	then.Ledger = t.taken(own)
	defer then.Ledger.Discard()
	next, ok := t.reserveBy(&then, &patient, ask, ends)
	if !ok || !next.Firm || next.Instant > l.Instant {
		return false
	}
	l.take(next, t.snap.Now)
	t.vacated(l)
	t.watch(l)
	l.clears = None // its owner evicts no unit there
	t.queue.mayHavePlaces()
	t.unrefuse(l)
	t.markOverlappingDirty(l)
	t.emit(Leased{l})
	return true
}

// taken returns the ledger after the entity has taken its best place. It holds until the next call.
func (t *turn) taken(own Answer) topology.Ledger {
	out := &t.scratch.taken
	out.begin(t.snap.Ledger.Free, own.Placement.Nodes)
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
	return t.snap.Ledger.Differing(out.free, out.nodes)
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

// newLease returns a closed lease of the entity on a place.
func (t *turn) newLease(reason Reason, holds []topology.Held, within topology.Domain) *Lease {
	e := &t.s.Entity
	discipline := t.policy.discipline(e)
	l := &Lease{
		Owner:        e.ID,
		Order:        e.Order,
		Reason:       reason,
		Within:       within,
		Expiry:       None,
		Accelerators: e.Accelerators,
		ask:          e.Ask,
		discipline:   discipline,
		preempts:     t.policy.insists(e),
		evaluated:    t.snap.Now,
		Since:        t.snap.Now,
		recheck:      None,
		clears:       None,
		Budget:       discipline.newBudget(e.Accelerators),
	}
	l.settle(holds)
	if a, ok := t.away[e.ID]; ok && a.Question == e.class().question {
		l.Budget = a.Budget
	}
	return l
}
