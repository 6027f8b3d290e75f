package waiting

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

const (
	// lag is the time after which they are evaluated again if the scheduler's snapshot is known to be behind.
	lag = 150 * time.Millisecond
	// settle is the time for which an entity that was woken may hold up later ones, and after which all are evaluated
	// once more after a change that the scheduler's own handlers may have seen after ours.
	settle = time.Second
)

// waker brings entities back into the scheduling queue.
type waker struct {
	wake func(contention.ID)
	// called are the entities that were woken and not evaluated since.
	called map[contention.ID]time.Time
	// coming are the entities that entered the scheduling queue and were not evaluated yet.
	coming map[contention.ID]arrival
	// released are entities that may try again whatever the machine says.
	released map[contention.ID]bool
	// back are those whose last attempt is over. Until then a call is lost: the scheduling queue ignores one for an
	// entity that is being tried.
	back map[contention.ID]bool
	// The wakings under way.
	soon, later, lagging, flush bool
	// watched says that a look is under way whether calls were lost.
	watched bool
	// timer is the next instant at which the machine changes by itself, 0 for none.
	timer int64
}

func newWaker() waker {
	return waker{
		called:   make(map[contention.ID]time.Time),
		coming:   make(map[contention.ID]arrival),
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

// Wakes sets the function that brings an entity back into the scheduling queue.
func (q *Queue) Wakes(wake func(contention.ID)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waker.wake = wake
}

// arrival is the time at which an entity entered the scheduling queue, and its place there.
type arrival struct {
	at    time.Time
	order contention.Order
}

// Gates reports whether the pod's gang, or a pod that is in none, has to stay out of the scheduling queue: one that
// waits is evaluated in the cycle of another one, unless it was called.
func (q *Queue) Gates(group *schedulingv1beta1.PodGroup, pod *corev1.Pod) bool {
	id := idOf(group, pod)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.placed != nil && q.placed.ID == id { // it is back without having started
		q.dropRefused()
	}
	if !q.machine.Knows(id) {
		q.waker.coming[id] = arrival{q.clock.Clock.Now(), q.orderOf(group, pod)}
		return false
	}
	if !q.waker.back[id] {
		q.waker.back[id] = true
		if q.waker.released[id] || q.machine.Candidate(id) { // a call may have been lost
			delete(q.waker.called, id)
			q.soon()
		}
	}
	_, called := q.waker.called[id]
	return !called && !q.waker.released[id]
}

// Holds is Gates for a caller that is not the scheduling queue.
func (q *Queue) Holds(id contention.ID) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	_, called := q.waker.called[id]
	return q.machine.Knows(id) && !called && !q.waker.released[id]
}

// Release lets an entity try again when it returns to the scheduling queue: its question has changed.
func (q *Queue) Release(id contention.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.machine.Knows(id) {
		q.waker.released[id] = true
	}
}

// defers reports whether an earlier entity has to be evaluated before this one: one that was called and is still
// expected, or that is about to be called. Freed room is for those that wait, in their order.
func (q *Queue) defers(id contention.ID) bool {
	if d := q.decided; d != nil && q.isCurrent(d) && d.id != id {
		own, _ := q.machine.OrderOf(id)
		if other, waits := q.machine.OrderOf(d.id); waits && other.Compare(own) < 0 {
			return true
		}
	}
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

// expects reports whether an entity is about to be evaluated, so that the round continues.
func (q *Queue) expects() bool {
	for id, of := range q.waker.coming {
		if q.clock.Clock.Since(of.at) < settle {
			return true
		}
		delete(q.waker.coming, id)
	}
	return slices.ContainsFunc(q.machine.Candidates(), func(id contention.ID) bool {
		at, called := q.waker.called[id]
		return !called || q.clock.Clock.Since(at) < settle
	})
}

// due returns the first candidate, unless it is on its way, and notes that it is called: the others are evaluated in
// its cycle. A call that was lost is repeated, and then the next candidate is called as well.
func (q *Queue) due() []contention.ID {
	var out []contention.ID
	for _, id := range slices.Sorted(maps.Keys(q.waker.released)) { // a call of one that is no candidate may be lost, too
		if _, called := q.waker.called[id]; !called && q.machine.Knows(id) {
			q.calls(id)
			out = append(out, id)
		}
	}
	if q.decided != nil && q.isCurrent(q.decided) {
		return out // the consequences of its outcome follow later
	}
	now := q.clock.Clock.Now()
	for _, id := range q.machine.Candidates() {
		at, called := q.waker.called[id]
		if called && now.Sub(at) < settle {
			break
		}
		q.calls(id)
		if out = append(out, id); !called {
			break
		}
	}
	return out
}

// calls notes that an entity is called, and looks after a while whether the call was lost.
func (q *Queue) calls(id contention.ID) {
	q.waker.called[id] = q.clock.Clock.Now()
	q.watch()
}

// watch repeats calls that were lost.
func (q *Queue) watch() {
	if q.waker.watched {
		return
	}
	q.waker.watched = true
	q.clock.AfterFunc(settle, func() {
		q.mu.Lock()
		q.waker.watched = false
		before := maps.Clone(q.waker.called)
		for id, at := range before {
			if !q.machine.Knows(id) {
				delete(q.waker.called, id)
			} else if q.waker.released[id] && q.clock.Clock.Since(at) >= settle {
				delete(q.waker.called, id)
			}
		}
		next := q.due()
		for _, id := range next { // one that does not return holds up others once
			if at, called := before[id]; called {
				q.waker.called[id] = at
			}
		}
		if len(q.waker.called) > 0 {
			q.watch()
		}
		q.mu.Unlock()
		q.wakeAll(next)
	})
}

// wakeAll calls entities, in order and without the lock: an idle scheduler takes the first entity that it finds, so
// that a later one must not be called first.
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
		if due == &q.waker.soon && q.parting() {
			q.soon()
			q.mu.Unlock()
			return
		}
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
