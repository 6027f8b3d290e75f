package waiting

import "github.com/lockstep-project/lockstep/scheduler/contention"

// Unit returns a unit as the queue knows it when something happens to it, nil if it knows none of that ID.
func (q *Queue) Unit(id contention.ID) *contention.Unit { return q.seen.units.Get(id) }
