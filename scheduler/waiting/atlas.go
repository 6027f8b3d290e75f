package waiting

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// Room is the room taken of each node, by name.
type Room = map[string]corev1.ResourceList

// atlas stores the places of leases by node name.
type atlas struct {
	places  map[contention.ID]*place
	demands demands
}

func (a *atlas) of(owner contention.ID) *place {
	if a.places[owner] == nil {
		a.places[owner] = &place{}
	}
	return a.places[owner]
}

// asks notes the question of an owner, in its coordinates.
func (a *atlas) asks(owner contention.ID, ask contention.Ask, at coordinates) {
	if p := a.places[owner]; p != nil {
		p.ask, p.at = ask, at
	}
}

// leased notes the place of a lease, in the coordinates of a question.
func (a *atlas) leased(x *Question, l *contention.Lease) {
	if x == nil {
		return // nothing but an evaluation moves a lease
	}
	p := a.of(l.Owner)
	p.members = x.memberPlaces(l.Holds)
	if x.id() == l.Owner {
		p.ask, p.at = l.Asks(), x.coordinates()
	}
}

func (a *atlas) released(owner contention.ID) { delete(a.places, owner) }

// held returns the place of a lease in the coordinates of a question.
func (a *atlas) held(x *Question, owner contention.ID) []topology.Held {
	p := a.places[owner]
	if p == nil {
		return nil
	}
	return x.held(p.members)
}

// owner returns the question of a lease's owner if it was asked in the coordinates of a question.
func (a *atlas) owner(x *Question, owner contention.ID) (contention.Ask, bool) {
	p := a.places[owner]
	if p == nil || p.at != x.coordinates() {
		return contention.Ask{}, false
	}
	return p.ask, true
}
