package direct

import (
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// queue decides which waiting entity starts next. The product's is contention.Machine, which documents the methods.
// Rivals that a contention.Policy cannot express have queues of their own, so that no rule of theirs is in the product.
type queue interface {
	entities
	changes
	Pass(now int64) []contention.Action
	Next() (contention.ID, bool)
	Turn(id contention.ID, snap *contention.Snapshot) []contention.Action
	Settle(snap *contention.Snapshot) []contention.Action
}

// entities are those that wait, and their reasons.
type entities interface {
	Add(e contention.Entity)
	Remove(id contention.ID, now int64) []contention.Action
	Waiting() []contention.ID
	Reason(id contention.ID) (contention.Wait, bool)
	Leases() []*contention.Lease
}

// changes are reported to a queue.
type changes interface {
	Started(id contention.ID, nodes []int, now int64) []contention.Action
	Freed(nodes []int)
	Taken(nodes []int)
	Ended(u *contention.Unit, now int64)
}

// queue returns the queue of a discipline.
func (o Options) queue() queue {
	switch o.Discipline {
	case Window:
		return &windowed{limits: slurmDefaults(), questions: make(map[string]int)}
	case Evicting:
		return &evicting{classes: make(map[classKey]*waitingClass), of: make(map[contention.ID]*waitingClass)}
	case Backfill, Promise, Strict, Unreserved, Greedy:
	}
	return contention.New(o.rules())
}

// spot is a waiting entity of a rival's queue.
type spot struct {
	contention.Entity

	// asks is the number of its question.
	asks int
}

// line is the waiting entities in the order of the queue.
type line []*spot

// add inserts an entity and returns its index.
func (l *line) add(e *spot) int {
	at, _ := slices.BinarySearchFunc(*l, e, func(a, b *spot) int { return a.Order.Compare(b.Order) })
	*l = slices.Insert(*l, at, e)
	return at
}

// remove removes an entity of that ID and returns its index, -1 if there is none.
func (l *line) remove(id contention.ID) int {
	at := slices.IndexFunc(*l, func(e *spot) bool { return e.ID == id })
	if at < 0 {
		return none
	}
	*l = slices.Delete(*l, at, at+1)
	return at
}

// ids returns the IDs in order.
func (l *line) ids() []contention.ID {
	out := make([]contention.ID, len(*l))
	for i, e := range *l {
		out[i] = e.ID
	}
	return out
}
