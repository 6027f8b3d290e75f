package waiting

import (
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// A round of the machine needs one snapshot, and the framework has one in each cycle. So the first candidate is called
// into the scheduling queue, and the others are evaluated in its cycle, in order. An attempt of the framework costs
// more than an evaluation, and most candidates do not start: only those that do, or for which units leave, have a cycle
// of their own.

// decided is the decision about an entity in the cycle of another one, for its own cycle.
type decided struct {
	id  contention.ID
	out Outcome
	at  coordinates
	// since is the time of the decision, and events the number of events before it.
	since  time.Time
	events int
}

// Following returns the entity that has to be evaluated next if that is possible in the cycle of another one; before is
// the place of the other one if that is evaluated itself when all before it are, else nil. It is not possible for
// single pods, whose nodes the framework chooses, for an entity on its way into the scheduling queue, and as long as an
// earlier one is.
func (q *Queue) Following(before *contention.Order) (contention.ID, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropRefused()
	id, ok := q.machine.Next()
	if !ok || q.decided != nil && q.isCurrent(q.decided) { // the outcome precedes its consequences
		return "", false
	}
	order, _ := q.machine.OrderOf(id)
	if _, single := NameOf(id); single || q.waker.released[id] || before != nil && order.Compare(*before) >= 0 {
		return "", false
	}
	now := q.clock.Clock.Now()
	if now.Sub(q.news) < q.clock.Gather {
		return "", false // the snapshot of the cycle may be older, and no event shows that yet
	}
	if q.parting() {
		return "", false
	}
	if at, called := q.waker.called[id]; called && now.Sub(at) < settle {
		return "", false
	}
	for _, other := range q.waker.coming {
		if now.Sub(other.at) < settle && other.order.Compare(order) < 0 {
			return "", false
		}
	}
	return id, true
}

// Consider evaluates an entity that Following named. It is false if the entity has to have a cycle of its own, since it
// starts or units have to leave for it: it is called, and Turn returns the outcome there unless something happens
// before.
func (q *Queue) Consider(x *Question) (Outcome, bool) {
	q.mu.Lock()
	now := q.clock.Clock.Now()
	snap, back := q.snapshot(x, now), q.waker.back[x.id()]
	e := q.adds(x, now)
	q.waker.back[e.ID] = back // this is no attempt
	q.events++
	if !q.machine.Candidate(e.ID) { // its question has changed, and an earlier entity that asks the same does not fit
		out := Outcome{}
		out.Wait, _ = q.machine.Reason(e.ID)
		q.conclude(x, &out, &snap)
		q.mu.Unlock()
		return out, true
	}
	out := q.evaluate(x, e.ID, &snap)
	if out.Placed == nil && len(out.Preempted) == 0 {
		q.conclude(x, &out, &snap)
		q.count()
		q.mu.Unlock()
		return out, true
	}
	q.decided = &decided{id: e.ID, out: out, at: x.coordinates(), since: now, events: q.events}
	q.mu.Unlock()
	q.Call(e.ID)
	return out, false
}

// isCurrent reports whether nothing has happened since.
func (q *Queue) isCurrent(d *decided) bool {
	return d.events == q.events && q.clock.Clock.Since(d.since) < lag
}

// take returns the outcome for the entity that was decided in the cycle of another one, false if there is none or it
// has become doubtful. A doubtful outcome has had no effect, and the entity is evaluated again.
func (q *Queue) take(x *Question) (Outcome, bool) {
	d := q.decided
	if d == nil || d.id != x.id() || d.at != x.coordinates() || !q.isCurrent(d) {
		return Outcome{}, false
	}
	q.decided = nil
	q.waker.evaluated(d.id)
	snap := q.snapshot(x, q.clock.Clock.Now())
	q.conclude(x, &d.out, &snap)
	if _, more := q.machine.Next(); more && d.out.Placed == nil {
		q.soon()
	}
	q.count()
	return d.out, true
}
