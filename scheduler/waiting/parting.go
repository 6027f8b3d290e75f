package waiting

import (
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
)

// The pods of a gang end one after another, within some tenths of a second. The room that the first of them leave would
// be taken by small entities, and a large one that fits into the whole would have to gather nodes elsewhere, which idle
// meanwhile. So candidates are woken when no unit has left only a part of its nodes, or a while after it left the
// first: one may lose a member and run on.

// longestParting is the time after which a unit that left some of its nodes is expected to have left the others: as
// long as related events may take.
const longestParting = settle

// partings are since when units have left some of their nodes, but not all.
type partings map[contention.ID]time.Time

// parts notes that a unit has left another one of its nodes.
func (q *Queue) parts(of *contention.Unit, now time.Time) {
	if q.leftAll(of) {
		delete(q.partings, of.ID)
		return
	}
	if _, known := q.partings[of.ID]; !known {
		q.partings[of.ID] = now
	}
}

// parting reports whether units are expected to leave the rest of their nodes soon. In virtual time, in which all
// events of an instant have happened when the loop stands still, there are none.
func (q *Queue) parting() bool {
	if q.clock.Gather == 0 {
		return false
	}
	now, some := q.clock.Clock.Now(), false
	for id, since := range q.partings {
		switch {
		case now.Sub(since) < longestParting:
			some = true
		case now.Sub(since) > time.Minute: // it runs on; until then it is not expected to leave the others at once
			delete(q.partings, id)
		}
	}
	return some
}

// leftAll reports whether a unit has left all nodes that it had in the last snapshot.
func (q *Queue) leftAll(of *contention.Unit) bool {
	for _, h := range of.Holds {
		if !q.vacated[vacancy{of.ID, h.Node}] {
			return false
		}
	}
	return true
}
