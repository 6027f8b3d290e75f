package direct

import (
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/topology"
)

// head is the first of the queue that has no room, and the place that is kept for it.
type head struct {
	job      int
	reserved topology.Reservation
	// keeps says of each node whether it is in the place.
	keeps []bool
	// moved is set when the place became another one, or somebody passed: who was refused because of the place may pass now,
	// elsewhere than where the core tried (Reservation.Admit does not try all places).
	moved bool
	// fresh is set while nothing has started or ended since the place was looked for.
	fresh bool
	// gang is what a policy keeps the place for, then the ledger at that instant, with those who pass and are still there.
	gang topology.Gang
	then topology.Ledger
}

// examine asks those that wait and may have got room, and tells what came of it.
func (e *player) examine() {
	before, kept := e.head.job, e.head.reserved
	for e.round() {
	}
	if e.head.job != nobody && (e.head.job != before || !same(e.head.reserved, kept)) {
		at := max(e.head.reserved.At, e.now)
		e.tally.keep(e.head.job, at)
		e.emit(Event{
			At: e.now, Kind: Kept, Job: e.head.job, Name: e.scene.Jobs[e.head.job].Name,
			Placement: e.head.reserved.Placement, Reserved: at,
		})
	}
	slices.Sort(e.came)
	for _, rank := range e.came {
		if i := e.order[rank]; e.jobs[i].waits {
			e.emit(Event{At: e.now, Kind: Refused, Job: i, Name: e.scene.Jobs[i].Name})
		}
	}
	e.came = e.came[:0]
}

// same reports whether two reservations are of the same nodes from the same instant.
func same(a, b topology.Reservation) bool {
	return a.At == b.At && slices.Equal(a.Placement.Nodes, b.Placement.Nodes)
}

// round asks once in the queue's order. It reports whether it has to be done again, because room was made, or because
// who was refused may pass by now.
func (e *player) round() bool {
	if e.changed {
		e.queue.open()
		e.head.job, e.changed = nobody, false
	}
	e.head.moved = false
	for l := e.queue.first(); l != nil; l = e.queue.first() {
		e.turn(l)
		if e.fault != nil {
			return false
		}
		if e.changed {
			return true
		}
	}
	if e.options.Policy == nil && e.head.moved {
		e.queue.reopen()
	}
	return e.options.Policy == nil && e.head.moved
}

// turn is that of the next in the lane.
func (e *player) turn(l *lane) {
	switch {
	case e.head.job != nobody && e.options.Discipline == Strict:
		l.closed = 0
	case e.head.job == nobody && e.options.Policy != nil:
		e.leadBy(l)
	case e.head.job == nobody:
		e.lead(l)
	case e.options.Policy != nil:
		e.followBy(l)
	default:
		e.follow(l)
	}
}

// ask is the next of the lane as it is put to the core.
func (e *player) ask(l *lane) (int, decision.Ask) {
	i := e.order[l.spots[l.next].rank]
	asked := &e.scene.Jobs[i]
	e.tally.decisions++
	return i, decision.Ask{
		Gang: asked.Gang, Needed: asked.Needed, End: e.later(e.promise(i), topology.EndUnknown),
	}
}

// measured is a decision that is being made, and since when.
type measured struct {
	by      *player
	begin   time.Time
	members int
}

// measure begins to measure a decision.
func (e *player) measure(ask decision.Ask) measured {
	m := measured{by: e, members: len(ask.Gang.Members)}
	if e.decided != nil {
		m.begin = e.wall()
	}
	return m
}

// answered tells what the decision cost, now that it is made.
func (m measured) answered(placed bool) {
	if m.by.decided != nil {
		m.by.decided(m.members, placed, m.by.wall().Sub(m.begin))
	}
}

// mayFit reports whether there may be room for a gang, which is told faster than where.
func (e *player) mayFit(gang topology.Gang) bool {
	if slices.ContainsFunc(gang.Members, func(m topology.Member) bool { return m.Placed }) {
		return true // survivors may get fewer members than are asked for
	}
	fits, err := topology.Fits(e.ledger, gang)
	return fits || err != nil
}

// lead asks for one who is behind nobody. If it has no room, a place is kept for it from now on.
func (e *player) lead(l *lane) {
	i, ask := e.ask(l)
	asked, gang := e.measure(ask), ask.Least()
	if e.mayFit(gang) {
		answer := decision.Place(e.ledger, ask)
		if answer.Refusal == nil {
			asked.answered(true)
			e.start(i, answer.Gang, answer.Placement)
			return
		}
		gang = answer.Gang
	}
	if e.options.Preempt && e.preempt(i, gang) {
		asked.answered(true)
		return
	}
	l.closed = 0
	if e.options.Discipline != Greedy {
		if kept := decision.Keep(e.ledger, e.running, ask); kept != nil {
			e.head.job = i
			e.keep(*kept)
			e.head.moved = false // nobody was asked about another one
		}
	}
	asked.answered(false)
}

// follow asks for one who is behind the gang for which a place is kept.
func (e *player) follow(l *lane) {
	i, ask := e.ask(l)
	asked := e.measure(ask)
	if !e.mayFit(ask.Least()) {
		asked.answered(false)
		l.closed = 0
		return
	}
	first := &e.scene.Jobs[e.head.job]
	turn := decision.Turn{
		Head:    decision.Ask{Gang: first.Gang, Needed: first.Needed},
		Keeps:   func(node int) bool { return e.head.keeps[node] },
		Running: func() []topology.Running { return e.running },
	}
	if e.head.fresh {
		turn.Fresh = &e.head.reserved
	}
	answer, kept := turn.Behind(e.ledger, ask)
	asked.answered(answer.Refusal == nil)
	if kept != nil {
		e.keep(*kept)
	}
	switch {
	case answer.Refusal == nil:
		e.start(i, answer.Gang, answer.Placement)
		e.head.moved = true
	case kept == nil: // there is no room at all
		l.closed = 0
	default:
		l.closed = l.spots[l.next].promise
	}
}

// keep notes the place that is kept.
func (e *player) keep(r topology.Reservation) {
	e.head.fresh = true
	if e.head.keeps == nil {
		e.head.keeps = make([]bool, e.ledger.Len())
	}
	if slices.Equal(r.Placement.Nodes, e.head.reserved.Placement.Nodes) {
		e.head.reserved = r
		return
	}
	e.head.moved = true
	for _, node := range e.head.reserved.Placement.Nodes {
		e.head.keeps[node] = false
	}
	for _, node := range r.Placement.Nodes {
		e.head.keeps[node] = true
	}
	e.head.reserved = r
}
