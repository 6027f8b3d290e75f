package waiting

import (
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

const (
	// lag is when they are evaluated again if the scheduler's snapshot is known to be behind.
	lag = 150 * time.Millisecond
	// settle is how long an entity that was woken may hold up later ones, and when all are evaluated once more after a change that the
	// scheduler's own handlers may have seen after ours.
	settle = time.Second
)

// waker brings entities back into the scheduling queue.
type waker struct {
	wake func(contention.ID)
	// called are the entities that were woken and not evaluated since.
	called map[contention.ID]time.Time
	// coming are the entities that entered the scheduling queue and were not evaluated yet.
	coming map[contention.ID]time.Time
	// released are entities that may try again whatever the machine says.
	released map[contention.ID]bool
	// back are those whose last attempt is over. Until then a call is lost: the scheduling queue ignores one for an entity that is
	// being tried.
	back map[contention.ID]bool
	// The wakings under way.
	soon, later, lagging, flush bool
	// timer is the next instant at which the machine changes by itself, 0 for none.
	timer int64
}

func newWaker() waker {
	return waker{
		called:   make(map[contention.ID]time.Time),
		coming:   make(map[contention.ID]time.Time),
		released: make(map[contention.ID]bool),
		back:     make(map[contention.ID]bool),
	}
}

// evaluated notes an attempt.
func (w *waker) evaluated(id contention.ID) {
	delete(w.called, id)
	delete(w.coming, id)
	delete(w.released, id)
	delete(w.back, id)
}

// Wakes sets what brings an entity back into the scheduling queue.
func (q *Queue) Wakes(wake func(contention.ID)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waker.wake = wake
}

// Keeps reports whether an entity that enters the scheduling queue has to stay out of it: nothing has changed that could help it.
func (q *Queue) Keeps(id contention.ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.machine.Knows(id) {
		q.waker.coming[id] = q.clock.Clock.Now()
		return false
	}
	if q.waker.released[id] || q.machine.Candidate(id) {
		if !q.waker.back[id] { // a call may have been lost, and those who were called with it are evaluated next
			q.waker.back[id] = true
			delete(q.waker.called, id)
			q.soon()
		}
		return false
	}
	q.waker.back[id] = true
	return true
}

// Holds is Keeps for a caller that is not the scheduling queue.
func (q *Queue) Holds(id contention.ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.waker.released[id] && !q.machine.Candidate(id)
}

// Release lets an entity try again when it comes to the scheduling queue: it asks another question now.
func (q *Queue) Release(id contention.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.machine.Knows(id) {
		q.waker.released[id] = true
	}
}

// defers reports whether an earlier entity has to be evaluated before this one: one that was called and is still expected, or that is
// about to be called. What became free is for those that wait, in their order.
func (q *Queue) defers(id contention.ID) bool {
	for _, other := range q.machine.Candidates() {
		if other == id {
			return false
		}
		if at, called := q.waker.called[other]; !called || q.clock.Clock.Since(at) < settle {
			return true
		}
	}
	return false
}

// expects reports whether an entity is about to be evaluated: the round goes on.
func (q *Queue) expects() bool {
	for id, at := range q.waker.coming {
		if q.clock.Clock.Since(at) < settle {
			return true
		}
		delete(q.waker.coming, id)
	}
	return slices.ContainsFunc(q.machine.Candidates(), func(id contention.ID) bool {
		at, called := q.waker.called[id]
		return !called || q.clock.Clock.Since(at) < settle
	})
}

// due returns the candidates that were not called, or whose call was lost, in order, and notes that they are called.
func (q *Queue) due() []contention.ID {
	var out []contention.ID
	now := q.clock.Clock.Now()
	for _, id := range q.machine.Candidates() {
		if at, called := q.waker.called[id]; called && now.Sub(at) < settle {
			continue
		}
		q.waker.called[id] = now
		out = append(out, id)
	}
	return out
}

// wakeAll calls entities, in order and without the lock: the scheduler takes what is there when it has nothing to do, so that a later
// one must not come first.
func (q *Queue) wakeAll(ids []contention.ID) {
	q.mu.Lock()
	wake := q.waker.wake
	q.mu.Unlock()
	if wake == nil {
		return
	}
	for _, id := range ids {
		wake(id)
	}
}

// remindIfCandidates wakes candidates soon, if there are any.
func (q *Queue) remindIfCandidates() {
	if _, ok := q.machine.Next(); ok {
		q.soon()
	}
}

// soon wakes the candidates when changes have been gathered.
func (q *Queue) soon() { q.remind(&q.waker.soon, q.clock.Gather) }

// remind wakes the candidates after a while, unless that is under way.
func (q *Queue) remind(due *bool, after time.Duration) {
	if *due {
		return
	}
	*due = true
	q.clock.AfterFunc(after, func() {
		q.mu.Lock()
		*due = false
		if due != &q.waker.soon { // the last evaluation may have been made without the change
			q.machine.Reopen()
		}
		next := q.due()
		q.mu.Unlock()
		q.wakeAll(next)
	})
}

// recheck has the machine look at its leases at an instant.
func (q *Queue) recheck(at int64) {
	if q.waker.timer != 0 && q.waker.timer <= at {
		return
	}
	q.waker.timer = at
	wait := time.Unix(at, 0).Sub(q.clock.Clock.Now())
	q.clock.AfterFunc(max(wait, time.Millisecond), func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.waker.timer != at {
			return
		}
		q.waker.timer = 0
		for _, action := range q.machine.Pass(q.now()) {
			q.act(nil, action)
		}
		q.remindIfCandidates()
	})
}
