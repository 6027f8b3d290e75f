package waiting

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/runtimes"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/topology"
)

// Queue holds the waiting entities and the leases of one process. It is safe for concurrent use.
type Queue struct {
	mu      sync.Mutex
	machine *contention.Machine
	clock   timing.Timing
	// seen is the last snapshot, with which events are translated.
	seen  seen
	atlas atlas
	// reader computes losses, nil before the plugins are made.
	reader *Reader
	// learner predicts run times, nil for a queue that does not learn.
	learner *runtimes.Learner
	waker   waker
	// placed is the entity that was placed last and has not started yet, asked is its question.
	placed *contention.Placed
	asked  *Question
	// decided is the decision about an entity in the cycle of another one, nil for none.
	decided *decided
	// begun are the units that started since the last snapshot.
	begun map[contention.ID]*contention.Unit
	// vacated are the nodes that units have left since the last snapshot, in its numbers.
	vacated map[vacancy]bool
	// partings are the units that have left some of their nodes only.
	partings partings
	// departed are pods that the scheduler's snapshot may still have.
	departed departed
	// round is the time at which the current round began, zero outside a round.
	round time.Time
	// evicted are the units whose eviction has begun.
	evicted map[contention.ID]*eviction
	// version is that of the readings of units.
	version int
	// refusedPreemptions are the entities whose victims would not make room, as the filters say. They choose none until
	// something changes.
	refusedPreemptions map[contention.ID]bool
	// missing are the nodes that cannot be used for a while, and since when.
	missing map[string]int64
	// labels are the node labels that were asked for.
	labels labels
	// changes counts the changes to leases.
	changes int
	// events counts the events of the fleet and of the queue, news is the time of the last event of the fleet.
	events int
	news   time.Time
	// reserved are the instants that were first reported for the leases of waiting entities; zero if they rested on
	// guesses.
	reserved map[contention.ID]time.Time
	// disciplines are those of the profiles, by their names.
	disciplines map[string]contention.Discipline
}

// seen is the queue's record of its last snapshot.
type seen struct {
	tree  *topology.Tree
	units *contention.Units
}

// New returns an empty queue.
func New(t timing.Timing, policy contention.Policy) *Queue {
	return &Queue{
		machine:            contention.New(policy),
		clock:              t,
		evicted:            make(map[contention.ID]*eviction),
		begun:              make(map[contention.ID]*contention.Unit),
		waker:              newWaker(),
		refusedPreemptions: make(map[contention.ID]bool),
		vacated:            make(map[vacancy]bool),
		partings:           make(partings),
		departed:           make(departed),
		missing:            make(map[string]int64),
		labels:             make(labels),

		disciplines: make(map[string]contention.Discipline),
		atlas:       atlas{places: make(map[contention.ID]*place)},

		reserved: make(map[contention.ID]time.Time),
	}
}

// Outcome is the decision about an entity.
type Outcome struct {
	// Placed is nil if the entity waits.
	Placed *contention.Placed
	// Preempted are the evictions that are needed for the entity, or for its leased place.
	Preempted []contention.Preempted
	// Wait is the reason for its wait.
	Wait contention.Wait
	// Lease is a copy of the entity's lease, nil if it has none.
	Lease *contention.Lease
	// Deferred says that earlier entities have to be evaluated first.
	Deferred bool
}

// Turn evaluates an entity. An entity that is placed has to be reported by Started before the next Turn; else it is
// taken to have been refused, and leaves the queue.
func (q *Queue) Turn(x *Question) Outcome {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.dropRefused()
	if out, ok := q.take(x); ok {
		return out
	}
	if id := x.id(); q.machine.Knows(id) && !q.machine.Candidate(id) && !q.waker.released[id] {
		// It was called, and is not expected any more: an evaluation now would move leases that rest on guesses.
		q.waker.evaluated(id)
		if !q.round.IsZero() && !q.goesOn() {
			snap := q.snapshot(x, q.clock.Clock.Now())
			q.settle(&snap)
		}
		reason, _ := q.machine.Reason(id)
		return Outcome{Wait: reason, Lease: q.lease(id)}
	}
	now := q.clock.Clock.Now()
	snap := q.snapshot(x, now)
	e := q.adds(x, now)
	if q.defers(e.ID) {
		q.soon()
		return Outcome{Deferred: true}
	}
	if !q.machine.Candidate(e.ID) {
		if !q.goesOn() {
			q.settle(&snap)
		}
		reason, _ := q.machine.Reason(e.ID)
		return Outcome{Wait: reason, Lease: q.lease(e.ID)}
	}
	q.events++
	out := q.evaluate(x, e.ID, &snap)
	q.conclude(x, &out, &snap)
	if _, more := q.machine.Next(); more {
		q.soon()
	}
	q.count()
	return out
}

// adds puts the entity of a question into the machine's queue.
func (q *Queue) adds(x *Question, now time.Time) contention.Entity {
	e := q.entity(x, now)
	e.NeverPreempts = e.NeverPreempts || q.refusedPreemptions[e.ID]
	q.revokeUnwanted(x, &e)
	q.machine.Add(e)
	q.waker.evaluated(e.ID)
	q.atlas.asks(e.ID, e.Ask, x.coordinates())
	return e
}

// evaluate has the machine evaluate an entity.
func (q *Queue) evaluate(x *Question, id contention.ID, snap *contention.Snapshot) Outcome {
	out := Outcome{}
	for _, action := range q.machine.Turn(id, snap) {
		q.act(x, action)
		switch a := action.(type) {
		case contention.Placed:
			out.Placed = &a
		case contention.Preempted:
			out.Preempted = append(out.Preempted, a)
		case contention.Waits:
			out.Wait = a.Reason
		}
	}
	return out
}

// conclude ends the round if the evaluation was its last.
func (q *Queue) conclude(x *Question, out *Outcome, snap *contention.Snapshot) {
	if out.Placed != nil { // the round ends when it has started
		q.placed, q.asked = out.Placed, x
	} else if !q.goesOn() {
		q.settle(snap)
	}
	out.Lease = q.lease(x.id())
	if out.Placed == nil {
		q.foresee(x, snap)
	}
	if q.departed.shown(x.View) || x.Lags {
		q.remind(&q.waker.lagging, lag)
	}
}

// goesOn reports whether the round continues since an entity is about to be evaluated: until then no lease may open or
// count idle time. A stream of entities delays the end of a round by a second at most.
func (q *Queue) goesOn() bool {
	if q.round.IsZero() {
		q.round = q.clock.Clock.Now()
	}
	return q.expects() && q.clock.Clock.Since(q.round) < settle
}

// settle ends the round.
func (q *Queue) settle(snap *contention.Snapshot) {
	q.round = time.Time{}
	for _, action := range q.machine.Settle(snap) {
		q.act(nil, action)
	}
	q.remindIfCandidates()
}

// act takes note of an action.
func (q *Queue) act(x *Question, action contention.Action) {
	switch a := action.(type) {
	case contention.Leased:
		q.changes++
		q.atlas.leased(x, a.Lease)
		if _, told := q.reserved[a.Lease.Owner]; !told && a.Lease.Reason == contention.Head {
			q.reserved[a.Lease.Owner] = expected(a.Lease)
		}
	case contention.Released:
		q.changes++
		q.atlas.released(a.Lease.Owner)
	case contention.Preempted: // a unit is evicted once a day
		q.changes++
	case contention.Rechecks:
		q.recheck(a.At)
	}
}

// expected is the instant that a lease names, zero if that is a guess.
func expected(l *contention.Lease) time.Time {
	if !l.Firm || l.Instant == contention.None {
		return time.Time{}
	}
	return time.Unix(l.Instant, 0)
}

// snapshot returns the values that an evaluation of the question reads.
func (q *Queue) snapshot(x *Question, now time.Time) contention.Snapshot {
	fleet := x.Fleet()
	snap := x.snapshot(fleet, now)
	snap.Held = func(l *contention.Lease) []topology.Held { return q.atlas.held(x, l.Owner) }
	snap.Owner = func(l *contention.Lease) (contention.Ask, bool) { return q.atlas.owner(x, l.Owner) }
	snap.Away = func(node int) (int64, bool) { return q.away(x, node) }
	q.labels.asks(x)
	q.markEvicted(fleet.Units, now)
	clear(q.begun)
	clear(q.vacated)
	q.seen = seen{tree: x.View.Tree, units: fleet.Units}
	return snap
}

// dropRefused removes the entity that was placed last and did not start: the framework's filters know something that
// the machine does not. The entity returns after the scheduling queue's own backoff.
func (q *Queue) dropRefused() {
	if q.placed == nil {
		return
	}
	for _, action := range q.machine.Remove(q.placed.ID, q.now()) {
		q.act(nil, action)
	}
	q.placed = nil
}

func (q *Queue) now() int64 { return q.clock.Clock.Now().Unix() }

// lease returns a copy of an owner's lease.
func (q *Queue) lease(owner contention.ID) *contention.Lease {
	l := q.machine.Lease(owner)
	if l == nil {
		return nil
	}
	of := *l
	return &of
}

// Position returns where an entity stands among all that wait, from 1; 0 if it does not wait.
func (q *Queue) Position(id contention.ID) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.machine.Position(id)
}

// Trial returns where the entity would be placed, for a dry run.
func (q *Queue) Trial(x *Question) contention.Answer {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.clock.Clock.Now()
	snap := q.snapshot(x, now)
	return q.machine.Trial(q.entity(x, now), &snap)
}

// Remove takes an entity out that is not ready any more.
func (q *Queue) Remove(id contention.ID) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.reserved, id) // also of one that was refused last, and is not in the machine
	delete(q.refusedPreemptions, id)
	if !q.machine.Knows(id) {
		return
	}
	q.events++
	for _, action := range q.machine.Remove(id, q.now()) {
		q.act(nil, action)
	}
	q.learner.Withdraws(id)
	q.waker.evaluated(id)
	q.count()
	q.remindIfCandidates()
}

// PodGone drops a pod that is deleted and in no gang, and its predicted run time. Another pod of its name may continue
// with its place.
func (q *Queue) PodGone(id contention.ID) {
	q.Remove(id)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.learner.Forget(id)
}

// Forget drops an entity that is deleted, and all leases for it.
func (q *Queue) Forget(id contention.ID) {
	q.Remove(id)
	q.mu.Lock()
	delete(q.waker.coming, id)
	q.learner.Forget(id)
	q.mu.Unlock()
	q.Revoke(id, contention.WhyGone)
}

// RevokeUnless ends the leases of owners that may not use one. A scheduler that takes over reads leases that are some
// seconds old: owners may have started, or been deleted, since.
func (q *Queue) RevokeUnless(mayUse func(owner contention.ID) bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.machine.Leases() {
		if !mayUse(l.Owner) {
			q.revoke(l.Owner, contention.WhyGone)
		}
	}
}

// Revoke ends the lease of an owner.
func (q *Queue) Revoke(owner contention.ID, why string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.revoke(owner, why)
}

func (q *Queue) revoke(owner contention.ID, why string) {
	q.revoked(q.machine.Revoke(owner, why, q.now()))
}

// revoked carries out the actions that follow the end of a lease.
func (q *Queue) revoked(actions []contention.Action) {
	q.events++
	for _, action := range actions {
		q.act(nil, action)
	}
	if len(actions) > 0 {
		q.remindIfCandidates()
	}
}

// Leases returns copies of all leases in the order of their owners, with the room of each by node name.
func (q *Queue) Leases() []Leased {
	q.mu.Lock()
	defer q.mu.Unlock()
	leases := q.machine.Leases()
	out, now := make([]Leased, len(leases)), q.now()
	for i, l := range leases {
		out[i].Lease = *l
		out[i].Lease.Budget = q.machine.Budget(l, now)
		if p := q.atlas.places[l.Owner]; p != nil {
			out[i].Room = room(p.members)
		}
		out[i].Owner, _ = NameOf(l.Owner)
	}
	return out
}

func (q *Queue) count() {
	if q.clock.Flush > 0 {
		q.remind(&q.waker.flush, q.clock.Flush)
	}
	metrics.Parked.Set(float64(q.machine.Len()))
}

// Leased is a lease by names.
type Leased struct {
	Lease contention.Lease
	Owner types.NamespacedName
	Room  Room
}
