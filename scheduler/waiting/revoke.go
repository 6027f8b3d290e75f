package waiting

import (
	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// whyRevoked is the reason for the end of a lease by an administrator's annotation.
const whyRevoked = "revoked by annotation " + topology.AnnotationReservation

// revokeUnwanted ends the lease of a gang for which an administrator wants none, and sees to it that it gets no other.
func (q *Queue) revokeUnwanted(x *Question, e *contention.Entity) {
	if x.Group == nil || x.Group.Annotations[topology.AnnotationReservation] != topology.NoReservation {
		return
	}
	e.Accelerators = 0 // an entity without accelerators gets no reservation
	if l := q.machine.Lease(e.ID); l != nil && l.Reason == contention.Head {
		for _, action := range q.machine.Revoke(e.ID, whyRevoked, q.now()) {
			q.act(x, action)
		}
	}
}
