package waiting

import (
	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// Add puts an entity into the queue that Turn evaluates later. It is for drivers without a scheduling queue: they add
// all entities, and evaluate those that Next names.
func (q *Queue) Add(x *Question) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entity(x, q.clock.Clock.Now())
	q.machine.Add(e)
	q.atlas.asks(e.ID, e.Ask, x.coordinates())
}

// Next returns the entity that has to be evaluated next, in the order of the queue; false if the queue is at rest.
func (q *Queue) Next() (contention.ID, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.machine.Next()
}

// Waiting returns all waiting entities in order.
func (q *Queue) Waiting() []contention.ID {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.machine.Waiting()
}

// Reason returns why an entity waits, as of its last evaluation or that of one with the same question; false if it does
// not wait.
func (q *Queue) Reason(id contention.ID) (contention.Wait, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.machine.Reason(id)
}

// LeasedNodes returns the nodes of an owner's lease, one for each leased member, by rank; nil if it has no lease.
func (q *Queue) LeasedNodes(owner contention.ID) []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.atlas.places[owner]
	if p == nil {
		return nil
	}
	nodes := make([]string, len(p.members))
	for i, m := range p.members {
		nodes[i] = m.node
	}
	return nodes
}

// Awaited returns the units that have to leave the leased place of a question's entity before it starts there, the last
// to end first.
func (q *Queue) Awaited(x *Question) []contention.Expectation {
	q.mu.Lock()
	defer q.mu.Unlock()
	snap := q.snapshot(x, q.clock.Clock.Now())
	return q.machine.Awaited(x.id(), &snap)
}
