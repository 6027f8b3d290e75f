package waiting

import (
	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// whyRevoked is why an administrator's annotation ends a lease.
const whyRevoked = "revoked by annotation " + topology.AnnotationReservation

// revokeUnwanted ends the lease of a gang for which an administrator wants none, and sees to it that it gets no other.
func (q *Queue) revokeUnwanted(x *Question, e *contention.Entity) {
	if x.Group == nil || x.Group.Annotations[topology.AnnotationReservation] != topology.NoReservation {
		return
	}
	e.Accelerators = 0 // what needs no accelerators keeps none from others
	if l := q.machine.Lease(e.ID); l != nil && l.Reason == contention.Head {
		for _, action := range q.machine.Revoke(e.ID, whyRevoked, q.now()) {
			q.act(x, action)
		}
	}
}
