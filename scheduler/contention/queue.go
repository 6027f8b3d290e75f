package contention

import (
	"cmp"
	"math"
	"slices"
)

// classKey holds the common properties of the entities of a class. Decisions about two of them differ by their order
// and run time only.
type classKey struct {
	question                    string
	needed                      int
	priority                    int32
	replacement, grows, elastic bool
	preemptible, never, apart   bool
	// grace is that of a preemptible entity: it decides whether a lease can be left in time.
	grace int64
	// together is that of the entity's own discipline, or ofPolicy: it decides whether the entity waits for one domain.
	together int64
}

// ofPolicy stands for the policy's percentage of togetherness, whatever it is.
const ofPolicy = -1

// class is an equivalence class of waiting entities: those of one question, in order.
type class struct {
	spots []*spot
	// full says that the first does not fit even beside no lease, so that none does.
	full bool
	// lacks is the deficit of the first entity when it did not fit.
	lacks deficit
	// beside counts an entity's deficit beside the leases that refused it.
	beside deficit
	// closed is the shortest run time that leases refused since the class was opened: an entity that runs as long need
	// not be evaluated.
	closed int64
	// next is the first spot that may have to be evaluated.
	next int
	// noPlace says that no end makes room for the question beside the leases, so that no entity of the class gets one.
	noPlace bool
	// services is Units.services, a count of changes, when noPlace was set. Ends of other units do not reset noPlace:
	// it assumes that all of them have ended.
	services int
	// timed says that entities of it may use a leased place before its instant: their run time is known, or they are
	// preemptible.
	timed bool
	// unpaid is the instant before which no eviction is considered for its entities, since none pays; 0 if there is
	// none.
	unpaid int64
	// balance is that of the eviction that does not pay.
	balance Balance
}

// forever is the run time of an entity for which none is known.
const forever = math.MaxInt64 - 1

// spot is an entity in its class.
type spot struct {
	Entity
	class *class
	// sweep is that of a trial, nil for others. A trial that is held waits for its sweep's turn: it is in no class, and
	// class has no entities. For one that passes, no end made room when it was evaluated last: its turn is the next
	// trial's.
	sweep        *sweep
	held, passes bool
	// turn marks those that have their turn while it is given anew.
	turn bool
	// reason is the result of the last evaluation.
	reason Wait
}

func (s *spot) runTime() int64 {
	if s.RunTime <= 0 {
		return forever
	}
	return s.RunTime
}

// leads reports whether the entity is the first of its class; false for none.
func (s *spot) leads() bool { return s != nil && s.heads(s.class) }

// heads reports whether the entity is the first of a class; false for none.
func (s *spot) heads(c *class) bool { return s != nil && len(c.spots) > 0 && s == c.spots[0] }

// queue holds the waiting entities.
type queue struct {
	classes []*class
	// retry is the first instant at which an eviction is considered again, None if there is none.
	retry int64
	byKey map[classKey]*class
	spots map[ID]*spot
	// sweeps are those with waiting trials, in the order of their names.
	sweeps []*sweep
}

func newQueue() queue {
	return queue{retry: None, byKey: make(map[classKey]*class), spots: make(map[ID]*spot)}
}

// add adds an entity to its class, and a trial to its sweep. One that is there already moves if its key or its order
// changed.
func (q *queue) add(e Entity) {
	old := q.spots[e.ID]
	if old != nil {
		if old.Entity.class() == e.class() && old.Order == e.Order && old.RunTime == e.RunTime &&
			old.Sweep == e.Sweep &&
			old.tries() == e.tries() {
			old.Entity = e
			return
		}
		q.remove(e.ID)
	}
	s := &spot{Entity: e}
	q.spots[e.ID] = s
	if e.tries() {
		q.enroll(s)
		if old != nil && old.sweep != nil && !old.held {
			s.keepTurn(old)
		}
	}
	if !s.held {
		q.enterClass(s)
	}
}

// enterClass adds an entity to its class.
func (q *queue) enterClass(s *spot) {
	e, key := &s.Entity, s.Entity.class()
	c := q.byKey[key]
	if c == nil {
		c = &class{closed: math.MaxInt64}
		q.byKey[key], q.classes = c, append(q.classes, c)
	}
	c.timed = c.timed || e.RunTime > 0 || e.Preemptible
	s.class = c
	at, _ := slices.BinarySearchFunc(c.spots, s, func(a, b *spot) int { return a.Order.Compare(b.Order) })
	c.spots = slices.Insert(c.spots, at, s)
	if at == 0 {
		c.open() // fewer leases bind it than the one that was first
		c.noPlace = false
	}
	c.next = min(c.next, at)
}

// remove removes an entity and returns its spot, nil if it is not there.
func (q *queue) remove(id ID) *spot {
	s := q.spots[id]
	if s == nil {
		return nil
	}
	delete(q.spots, id)
	if s.sweep != nil {
		q.expel(s)
	}
	if !s.held {
		q.leaveClass(s)
	}
	return s
}

// leaveClass takes an entity out of its class.
func (q *queue) leaveClass(s *spot) {
	c := s.class
	at := slices.Index(c.spots, s)
	if at == 0 {
		c.spots = c.spots[1:]
	} else {
		c.spots = slices.Delete(c.spots, at, at+1)
	}
	if at < c.next {
		c.next--
	}
}

// open has the first of each class evaluated again.
func (q *queue) open() {
	for _, c := range q.classes {
		c.open()
	}
}

func (c *class) open() { c.full, c.closed, c.next = false, math.MaxInt64, 0 }

// putOff notes that no eviction pays for the entities of a class, and that none is considered before an instant.
func (q *queue) putOff(c *class, unpaid Balance, until int64) {
	c.unpaid, c.balance = until, unpaid
	q.retry = min(q.retry, until)
}

// reconsider opens the classes for which an eviction is considered again.
func (q *queue) reconsider(now int64) {
	if now < q.retry {
		return
	}
	q.retry = None
	for _, c := range q.classes {
		switch {
		case c.unpaid == 0:
		case now >= c.unpaid:
			c.unpaid = 0
			c.open()
		default:
			q.retry = min(q.retry, c.unpaid)
		}
	}
}

// mayHavePlaces has all classes look for a place again: capacity returned for good, or a lease moved or ended.
func (q *queue) mayHavePlaces() {
	for _, c := range q.classes {
		c.noPlace = false
	}
}

// candidate returns the first entity of the class that may fit, nil if there is none.
func (c *class) candidate() *spot {
	if c.full {
		c.next = len(c.spots)
	}
	for c.next < len(c.spots) && c.spots[c.next].runTime() >= c.closed {
		c.next++
	}
	if c.next == len(c.spots) {
		return nil
	}
	return c.spots[c.next]
}

// earliest returns the spot that is first in order; nil for none.
func earliest(spots ...*spot) *spot {
	var first *spot
	for _, s := range spots {
		if s != nil && (first == nil || s.Order.Compare(first.Order) < 0) {
			first = s
		}
	}
	return first
}

// tidy drops classes without entities; the queue keeps some, since questions recur.
func (q *queue) tidy() {
	const most = 64
	if len(q.classes) <= most+2*len(q.spots) {
		return
	}
	for key, c := range q.byKey {
		if len(c.spots) == 0 {
			delete(q.byKey, key)
		}
	}
	q.classes = slices.DeleteFunc(q.classes, func(c *class) bool { return len(c.spots) == 0 })
}

// sorted returns all waiting entities in order.
func (q *queue) sorted() []*spot {
	out := make([]*spot, 0, len(q.spots))
	for _, s := range q.spots {
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *spot) int { return cmp.Or(a.Order.Compare(b.Order), cmp.Compare(a.ID, b.ID)) })
	return out
}
