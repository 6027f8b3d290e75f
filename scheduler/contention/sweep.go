package contention

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Sweep is the set of trials to which a gang belongs (rule 17). The zero value is none.
type Sweep struct {
	// Name is that of the set, with its namespace: a sweep of the same name in another namespace is another one.
	Name string
	// Limit bounds the gangs of the sweep that run at a time, as this trial has it; 0 if it names none. The lowest one
	// of its trials counts.
	Limit int
}

// SweepTurn describes a trial's wait for its sweep's turn.
type SweepTurn struct {
	// Name is that of the sweep, with its namespace.
	Name string
	// Running counts its gangs that run, Before those that wait and have their turn before the trial; Limit is that of
	// the sweep.
	Running, Before, Limit int
}

// String says it in words: "waits for its sweep's turn: 4 of 4 trials run".
func (t SweepTurn) String() string {
	text := fmt.Sprintf("waits for its sweep's turn: %d of %d trials run", t.Running, t.Limit)
	switch t.Before {
	case 0:
		return text
	case 1:
		return text + ", and 1 has its turn before it"
	}
	return text + fmt.Sprintf(", and %d have their turn before it", t.Before)
}

// sweep holds the trials of a set that has waiting ones.
type sweep struct {
	name string
	// spots are its trials that wait, in order. in are those of them that have their turn, in order; the others are in
	// no class.
	spots, in []*spot
	// waiting sums its trials that wait, running its gangs that run, as of the last snapshot and as of the starts
	// since.
	waiting, running trials
	// doubt says that fewer may run: a unit has left, or the last snapshot was behind. Then one trial more has its
	// turn, whose evaluation counts.
	doubt bool
}

// trials sums trials of a sweep: their number, and the lowest limit that one names, 0 for none.
type trials struct {
	count, limit int
	// limits counts the trials with each limit.
	limits map[int]int
}

// add adds a trial, or removes one.
func (t *trials) add(limit, by int) {
	t.count += by
	if limit <= 0 {
		return
	}
	if t.limits == nil {
		t.limits = make(map[int]int)
	}
	if t.limits[limit] += by; t.limits[limit] <= 0 {
		delete(t.limits, limit)
	}
	t.limit = 0
	for of := range t.limits {
		t.limit = lower(t.limit, of)
	}
}

// lower returns the lower of two limits; 0 is none.
func lower(a, b int) int {
	if a == 0 || b == 0 {
		return a + b
	}
	return min(a, b)
}

// countTrial counts a unit that is added or removed. Members that an elastic gang can do without are units of their
// own, and no gangs.
func (u *Units) countTrial(unit *Unit, by int) {
	of := unit.Sweep
	if of.Name == "" || unit.Of != "" {
		return
	}
	t := u.sweeps[of.Name]
	if t == nil {
		if u.sweeps == nil {
			u.sweeps = make(map[string]*trials)
		}
		t = &trials{}
		u.sweeps[of.Name] = t
	}
	if t.add(of.Limit, by); t.count == 0 {
		delete(u.sweeps, of.Name)
	}
}

// tries reports whether the entity is a trial that starts. Members that join a gang which runs belong to a trial that
// has had its turn.
func (e *Entity) tries() bool {
	return e.Sweep.Name != "" &&
		!slices.ContainsFunc(e.Ask.Gang.Members, func(m topology.Member) bool { return m.Placed })
}

// enroll adds a trial to its sweep. It is held.
func (q *queue) enroll(s *spot) {
	w := q.sweep(s.Sweep.Name)
	if w == nil {
		w = &sweep{name: s.Sweep.Name}
		at, _ := slices.BinarySearchFunc(q.sweeps, w.name, compareSweeps)
		q.sweeps = slices.Insert(q.sweeps, at, w)
	}
	w.spots = insertSpot(w.spots, s)
	w.waiting.add(s.Sweep.Limit, 1)
	s.sweep, s.held, s.class = w, true, new(class)
}

// keepTurn has a changed trial that had its turn retain it, or continue to pass it.
func (s *spot) keepTurn(before *spot) {
	s.held, s.passes = false, before.passes
	s.sweep.in = insertSpot(s.sweep.in, s)
}

// expel takes a trial out of its sweep.
func (q *queue) expel(s *spot) {
	w := s.sweep
	is := func(other *spot) bool { return other == s }
	w.spots, w.in = slices.DeleteFunc(w.spots, is), slices.DeleteFunc(w.in, is)
	w.waiting.add(s.Sweep.Limit, -1)
	if len(w.spots) == 0 {
		q.sweeps = slices.DeleteFunc(q.sweeps, func(other *sweep) bool { return other == w })
	}
}

// sweep returns the sweep of that name, nil if none of its trials wait.
func (q *queue) sweep(name string) *sweep {
	if at, found := slices.BinarySearchFunc(q.sweeps, name, compareSweeps); found {
		return q.sweeps[at]
	}
	return nil
}

func compareSweeps(w *sweep, name string) int { return cmp.Compare(w.name, name) }

func insertSpot(spots []*spot, s *spot) []*spot {
	at, _ := slices.BinarySearchFunc(spots, s, func(a, b *spot) int { return a.Order.Compare(b.Order) })
	return slices.Insert(spots, at, s)
}

// limit returns the most gangs of the sweep that may run, 0 without limit: the lowest number that one of its trials
// names, whether it waits or runs.
func (w *sweep) limit() int {
	return lower(w.running.limit, w.waiting.limit)
}

// before counts the trials of a sweep that wait for their turn, and precede a place in the queue.
func (w *sweep) before(of Order) int {
	count := func(spots []*spot) int {
		at, _ := slices.BinarySearchFunc(spots, of, func(s *spot, of Order) int { return s.Order.Compare(of) })
		return at
	}
	return count(w.spots) - count(w.in)
}

// turn describes the wait of a trial that is held.
func (w *sweep) turn(s *spot) *SweepTurn {
	before := 0
	for _, other := range w.in {
		if !other.passes && other.Order.Compare(s.Order) < 0 {
			before++
		}
	}
	return &SweepTurn{Name: w.name, Running: w.running.count, Before: before, Limit: w.limit()}
}

// heldReason returns the reason for which a held trial waits.
func (s *spot) heldReason() Wait { return Wait{Cause: SweepsTurn, Sweep: s.sweep.turn(s), At: None} }
