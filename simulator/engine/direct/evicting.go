package direct

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// evicting is the queue of a Kueue ClusterQueue with queueingStrategy BestEffortFIFO and preemption.withinClusterQueue:
// LowerPriority. Each job that fits starts, in the order of the queue; no place is reserved. A job that does not fit
// has jobs of lower priority evicted if it fits without them. The choice of victims is Kueue's
// (pkg/scheduler/preemption of kubernetes-sigs/kueue: CandidatesOrdering, minimalPreemptions, fillBackWorkloads):
//
//   - candidates are the running jobs of lower priority: those that leave already first, then the lowest priority, then the latest start;
//   - they are taken away one after the other until the job fits, or none is evicted;
//   - in the reverse order, each but the last is put back if the job still fits.
//
// While victims leave, no job behind the one that evicts starts: it stays the head of the queue. Candidates are jobs
// that the scenario lets be preempted, as for Lockstep: Kueue has no such mark, and owners of other jobs would use
// another ClusterQueue.
//
// Not modeled: quotas, borrowing, cohorts, fair sharing, LowerOrNewerEqualPriority.
type evicting struct {
	// classes groups waiting entities that fit or do not fit alike; of is the class of each entity.
	classes map[classKey]*waitingClass
	of      map[contention.ID]*waitingClass
	// barred is the order of the entity whose victims leave, nil for none.
	barred *contention.Order
}

// classKey holds the common properties of an equivalence class: entities that fit or do not fit alike.
type classKey struct {
	question string
	needed   int
	priority int32
	never    bool
}

// waitingClass holds the entities of a class. It is closed while the first does not fit.
type waitingClass struct {
	line   line
	closed bool
}

// Add implements queue.
func (q *evicting) Add(e contention.Entity) {
	q.drop(e.ID)
	key := classKey{e.Question, e.Ask.Needed, e.Order.Priority, e.NeverPreempts}
	c := q.classes[key]
	if c == nil {
		c = &waitingClass{}
		q.classes[key] = c
	}
	c.line.add(&spot{Entity: e})
	q.of[e.ID] = c
}

// drop removes an entity.
func (q *evicting) drop(id contention.ID) {
	if c := q.of[id]; c != nil {
		c.line.remove(id)
		delete(q.of, id)
	}
}

// Remove implements queue.
func (q *evicting) Remove(id contention.ID, _ int64) []contention.Action {
	q.drop(id)
	q.Freed(nil)
	return nil
}

// Started implements queue.
func (q *evicting) Started(id contention.ID, _ []int, _ int64) []contention.Action {
	q.drop(id)
	return nil
}

// Freed implements queue.
func (q *evicting) Freed([]int) {
	q.barred = nil
	for _, c := range q.classes {
		c.closed = false
	}
}

// Taken implements queue.
func (q *evicting) Taken([]int) {}

// Ended implements queue.
func (q *evicting) Ended(*contention.Unit, int64) { q.Freed(nil) }

// Pass implements queue.
func (q *evicting) Pass(int64) []contention.Action { return nil }

// Next implements queue.
func (q *evicting) Next() (contention.ID, bool) {
	var first *spot
	for _, c := range q.classes {
		if c.closed || len(c.line) == 0 {
			continue
		}
		if e := c.line[0]; first == nil || e.Order.Compare(first.Order) < 0 {
			first = e
		}
	}
	if first == nil || q.barred != nil && first.Order.Compare(*q.barred) > 0 {
		return "", false
	}
	return first.ID, true
}

// Turn implements queue.
func (q *evicting) Turn(id contention.ID, snap *contention.Snapshot) []contention.Action {
	c := q.of[id]
	if c == nil {
		return nil
	}
	e := &c.line[0].Entity
	a := snap.Placer.Place(snap.Ledger, e.Ask)
	if a.Refusal == nil {
		return []contention.Action{contention.Placed{ID: id, Gang: a.Gang, Placement: a.Placement}}
	}
	c.closed = true
	if e.NeverPreempts {
		return nil
	}
	victims := q.victims(snap, e)
	var evict []contention.ID
	for _, u := range victims {
		if !u.Leaving {
			evict = append(evict, u.ID)
		}
	}
	if len(victims) > 0 {
		order := e.Order
		q.barred = &order
	}
	if len(evict) == 0 {
		return nil
	}
	return []contention.Action{contention.Preempted{ID: id, Victims: evict}}
}

// Settle implements queue.
func (q *evicting) Settle(*contention.Snapshot) []contention.Action { return nil }

// Waiting implements queue.
func (q *evicting) Waiting() []contention.ID {
	var all line
	for _, c := range q.classes {
		all = append(all, c.line...)
	}
	slices.SortFunc(all, func(a, b *spot) int { return a.Order.Compare(b.Order) })
	return all.ids()
}

// Reason implements queue.
func (q *evicting) Reason(id contention.ID) (contention.Wait, bool) {
	return contention.Wait{Cause: contention.NoRoom, At: contention.None}, q.of[id] != nil
}

// Leases implements queue.
func (q *evicting) Leases() []*contention.Lease { return nil }

// victims returns the units that have to leave for an entity, nil if it does not fit without all candidates. More free
// capacity is assumed never to harm, so that the number of those that are taken away is searched by halves.
func (q *evicting) victims(snap *contention.Snapshot, e *contention.Entity) []*contention.Unit {
	candidates := slices.Clone(snap.Running.Preemptible(e.Order.Priority))
	slices.SortFunc(candidates, func(a, b *contention.Unit) int {
		if a.Leaving != b.Leaving && a.Leaving {
			return -1
		} else if a.Leaving != b.Leaving {
			return 1
		}
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), -cmp.Compare(a.Started, b.Started), cmp.Compare(a.ID, b.ID))
	})
	fits := func(without []*contention.Unit) bool {
		return snap.Placer.Place(rid(snap.Ledger, without), e.Ask).Refusal == nil
	}
	if len(candidates) == 0 || !fits(candidates) {
		return nil
	}
	low, high := 0, len(candidates)
	for low < high {
		if middle := low + (high-low)/2; fits(candidates[:middle]) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	victims := candidates[:high]
	for i := len(victims) - 2; i >= 0; i-- {
		if without := slices.Delete(slices.Clone(victims), i, i+1); fits(without) {
			victims = without
		}
	}
	return victims
}

// rid returns the ledger without the capacity that some units hold.
func rid(l topology.Ledger, units []*contention.Unit) topology.Ledger {
	l.Free = slices.Clone(l.Free)
	own := make([]bool, len(l.Free))
	for _, u := range units {
		for _, held := range u.Holds {
			if !own[held.Node] {
				own[held.Node], l.Free[held.Node] = true, slices.Clone(l.Free[held.Node])
			}
			for r, amount := range held.Demand {
				if r < len(l.Free[held.Node]) {
					l.Free[held.Node][r] += amount
				}
			}
		}
	}
	return l
}
