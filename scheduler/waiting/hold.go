package waiting

import (
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	// lateGrace is the duration of the leases on places of late members: an MPI launcher is created when its workers
	// are ready, which takes as long as their images are pulled.
	lateGrace = time.Hour
	// startGrace is the duration of the leases on places of a start that was cut off.
	startGrace = 5 * time.Minute
)

// HoldLate leases the places of the late members of a gang that starts. If all of them exist, their lease ends.
func (q *Queue) HoldLate(x *Question, placed contention.Placed) {
	late := holdsOf(placed.Gang, placed.Placement, func(m topology.Member) bool { return m.Late && !m.Placed })
	if len(late) == 0 {
		q.EndHold(x.id(), contention.LateMember)
		return
	}
	q.Hold(x, contention.LateMember, late, lateGrace)
}

// HoldMissing leases places for the members that a running gang lacks: late ones, and those of a start that was cut
// off. The question names the latter as waiting members. It returns why there is no place, nil if there is one or no
// member is missing.
func (q *Queue) HoldMissing(x *Question) *contention.Refusal {
	missing := func(m topology.Member) bool { return !m.Placed }
	if !slices.ContainsFunc(x.Choices[0].Gang.Members, missing) {
		return nil
	}
	answer := q.Trial(x)
	if answer.Refusal != nil {
		return answer.Refusal
	}
	reason, grace := contention.LateMember, lateGrace
	if x.Needed() > 0 {
		reason, grace = contention.Start, startGrace
	}
	q.Hold(x, reason, holdsOf(answer.Gang, answer.Placement, missing), grace)
	return nil
}

// holdsOf returns the capacity that some members take at a placement.
func holdsOf(gang topology.Gang, p topology.Placement, takes func(topology.Member) bool) []topology.Held {
	var holds []topology.Held
	for rank, node := range p.Nodes {
		if m := gang.Members[rank]; takes(m) {
			holds = append(holds, topology.Held{Node: node, Demand: gang.Shapes[m.Shape].Demand})
		}
	}
	return holds
}
