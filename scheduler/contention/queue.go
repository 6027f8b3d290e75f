package contention

import (
	"cmp"
	"math"
	"slices"
)

// laneKey holds the common properties of the entities of a lane. Decisions about two of them differ by their order and
// run time only.
type laneKey struct {
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

// lane is the entities of one question, in order.
type lane struct {
	spots []*spot
	// full says that the first does not fit even beside no lease, so that none does.
	full bool
	// lacks is the deficit of the first entity when it did not fit.
	lacks deficit
	// beside counts an entity's deficit beside the leases that refused it.
	beside deficit
	// closed is the shortest run time that leases refused since the lane was opened: an entity that runs as long need not be
	// evaluated.
	closed int64
	// next is the first spot that may have to be evaluated.
	next int
	// noPlace says that no end makes room for the question beside the leases, so that no entity of the lane gets one.
	noPlace bool
	// services is Units.services, a count of changes, when noPlace was set. Ends of other units do not reset noPlace: it
	// assumes that all of them have ended.
	services int
	// timed says that entities of it may use a leased place before its instant: their run time is known, or they are preemptible.
	timed bool
	// unpaid is the instant before which no eviction is considered for its entities, since none pays; 0 if there is none.
	unpaid int64
	// balance is that of the eviction that does not pay.
	balance Balance
}

// forever is the run time of an entity for which none is known.
const forever = math.MaxInt64 - 1

// spot is an entity in its lane.
type spot struct {
	Entity
	lane *lane
	// sweep is that of a trial, nil for others. A trial that is held waits for its sweep's turn: it is in no lane, and lane has no entities.
	// For one that passes, no end made room when it was evaluated last: its turn is the next trial's.
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

// leads reports whether the entity is the first of its lane; false for none.
func (s *spot) leads() bool { return s != nil && s.heads(s.lane) }

// heads reports whether the entity is the first of a lane; false for none.
func (s *spot) heads(l *lane) bool { return s != nil && len(l.spots) > 0 && s == l.spots[0] }

// queue holds the waiting entities.
type queue struct {
	lanes []*lane
	// retry is the first instant at which an eviction is considered again, None if there is none.
	retry int64
	byKey map[laneKey]*lane
	spots map[ID]*spot
	// sweeps are those with waiting trials, in the order of their names.
	sweeps []*sweep
}

func newQueue() queue {
	return queue{retry: None, byKey: make(map[laneKey]*lane), spots: make(map[ID]*spot)}
}

// add adds an entity to its lane, and a trial to its sweep. One that is there already moves if its key or its order changed.
func (q *queue) add(e Entity) {
	old := q.spots[e.ID]
	if old != nil {
		if old.Entity.lane() == e.lane() && old.Order == e.Order && old.RunTime == e.RunTime && old.Sweep == e.Sweep &&
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
		q.enterLane(s)
	}
}

// enterLane adds an entity to its lane.
func (q *queue) enterLane(s *spot) {
	e, key := &s.Entity, s.Entity.lane()
	l := q.byKey[key]
	if l == nil {
		l = &lane{closed: math.MaxInt64}
		q.byKey[key], q.lanes = l, append(q.lanes, l)
	}
	l.timed = l.timed || e.RunTime > 0 || e.Preemptible
	s.lane = l
	at, _ := slices.BinarySearchFunc(l.spots, s, func(a, b *spot) int { return a.Order.Compare(b.Order) })
	l.spots = slices.Insert(l.spots, at, s)
	if at == 0 {
		l.open() // fewer leases bind it than the one that was first
		l.noPlace = false
	}
	l.next = min(l.next, at)
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
		q.leaveLane(s)
	}
	return s
}

// leaveLane takes an entity out of its lane.
func (q *queue) leaveLane(s *spot) {
	l := s.lane
	at := slices.Index(l.spots, s)
	if at == 0 {
		l.spots = l.spots[1:]
	} else {
		l.spots = slices.Delete(l.spots, at, at+1)
	}
	if at < l.next {
		l.next--
	}
}

// open has the first of each lane evaluated again.
func (q *queue) open() {
	for _, l := range q.lanes {
		l.open()
	}
}

func (l *lane) open() { l.full, l.closed, l.next = false, math.MaxInt64, 0 }

// putOff notes that no eviction pays for the entities of a lane, and that none is considered before an instant.
func (q *queue) putOff(l *lane, unpaid Balance, until int64) {
	l.unpaid, l.balance = until, unpaid
	q.retry = min(q.retry, until)
}

// reconsider opens the lanes for which an eviction is considered again.
func (q *queue) reconsider(now int64) {
	if now < q.retry {
		return
	}
	q.retry = None
	for _, l := range q.lanes {
		switch {
		case l.unpaid == 0:
		case now >= l.unpaid:
			l.unpaid = 0
			l.open()
		default:
			q.retry = min(q.retry, l.unpaid)
		}
	}
}

// mayHavePlaces has all lanes look for a place again: capacity returned for good, or a lease moved or ended.
func (q *queue) mayHavePlaces() {
	for _, l := range q.lanes {
		l.noPlace = false
	}
}

// candidate returns the first entity of the lane that may fit, nil if there is none.
func (l *lane) candidate() *spot {
	if l.full {
		l.next = len(l.spots)
	}
	for l.next < len(l.spots) && l.spots[l.next].runTime() >= l.closed {
		l.next++
	}
	if l.next == len(l.spots) {
		return nil
	}
	return l.spots[l.next]
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

// tidy drops lanes without entities; the queue keeps some, since questions recur.
func (q *queue) tidy() {
	const most = 64
	if len(q.lanes) <= most+2*len(q.spots) {
		return
	}
	for key, l := range q.byKey {
		if len(l.spots) == 0 {
			delete(q.byKey, key)
		}
	}
	q.lanes = slices.DeleteFunc(q.lanes, func(l *lane) bool { return len(l.spots) == 0 })
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
