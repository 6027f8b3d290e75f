package gangplacement

import (
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"

	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/scheduler/reservation"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// someday is when work ends of which nobody knows when it ends, if it ends at all: after all ends that are known. The place
// of the first gang is kept free from now on all the same; only nobody can pass it by being short.
const someday = math.MaxInt64 - 1

// placeInTurn places the gang, unless another one is before it in the queue that has no room yet: then only where, and for as
// long as, that one is not delayed by it. A gang that runs already gets its lost members back whoever waits.
func (p *GangPlacement) placeInTurn(
	q question, view snapshot.View, ledger topology.Ledger, gang topology.Gang,
) (topology.Gang, topology.Placement, *refusal) {
	placed, placement, no := place(ledger, gang, q.needed)
	head := p.book.Before(q.group)
	if q.fleet != asItIs || head == nil || len(q.running) > 0 || no != nil || apart(placement, head, view) {
		return placed, placement, no
	}
	first, err := view.Gang(head.Group, head.Waiting, nil, nil)
	if err != nil {
		return placed, placement, no
	}
	running := p.ends(view)
	first = needs(first, head.Needed)
	reserved, short, err := topology.Reserve(ledger, first, running)
	if short != nil || err != nil { // it cannot be helped by waiting
		return placed, placement, no
	}
	p.write(*head, view, first, reserved)
	gang = needs(gang, q.needed)
	admitted, shortfall, err := reserved.Admit(ledger, running, first, gang, endOf(q))
	switch {
	case err != nil:
		return gang, admitted, &refusal{explanation.WrongRequest, err.Error(), ruleRequest}
	case shortfall != nil:
		return gang, admitted, &refusal{explanation.NoRoom, shortfall.String(), ruleOf(shortfall)}
	}
	return gang, admitted, nil
}

// apart reports whether a placement has no node of the reservation: then it takes nothing that the other gang waits for, and what
// runs need not be looked at.
func apart(placement topology.Placement, head *reservation.Head, view snapshot.View) bool {
	return !slices.ContainsFunc(placement.Nodes, func(at int) bool {
		_, reserved := head.Rooms[view.Tree.Node(at)]
		return reserved
	})
}

// reserve keeps a place for a gang that has no room, if it is the first of the queue, and if the end of what runs would help.
func (p *GangPlacement) reserve(q question, view snapshot.View, ledger topology.Ledger, gang topology.Gang) {
	if q.fleet != asItIs || len(q.running) > 0 || p.book.Before(q.group) != nil {
		return
	}
	reserved, short, err := topology.Reserve(ledger, gang, p.ends(view))
	if short != nil || err != nil {
		p.book.Drop(q.group.UID)
		return
	}
	p.write(reservation.Head{Key: q.key, Group: q.group, Waiting: q.waiting, Needed: q.needed}, view, gang, reserved)
}

// write keeps the reservation, with the room that it takes on each node.
func (p *GangPlacement) write(
	head reservation.Head, view snapshot.View, gang topology.Gang, reserved topology.Reservation,
) {
	head.Rooms = make(map[string]corev1.ResourceList, len(reserved.Placement.Nodes))
	for rank, at := range reserved.Placement.Nodes {
		node := view.Tree.Node(at)
		head.Rooms[node] = quota.Add(head.Rooms[node], view.Room(gang.Shapes[gang.Members[rank].Shape]))
	}
	p.book.Reserve(head)
	// If it was deleted meanwhile, that may have been told before the reservation was there; nobody would drop it any more.
	groups := p.handle.SharedInformerFactory().Scheduling().V1beta1().PodGroups().Lister()
	if now, err := groups.PodGroups(head.Key.Namespace).Get(head.Key.Name); err != nil || now.UID != head.Group.UID {
		p.book.Drop(head.Group.UID)
	}
}

// ends are all that runs, and when it ends: a gang by its annotation, a pod by its own deadline. What is started again when it
// ends (services, what is on every node) stays.
func (p *GangPlacement) ends(view snapshot.View) []topology.Running {
	units := view.Units(p.handle.SnapshotSharedLister().PodGroups())
	running := make([]topology.Running, len(units))
	for i, u := range units {
		running[i] = topology.Running{Name: u.Name, Holds: u.Holds, End: seconds(u.End())}
		if u.Stays() {
			running[i].End = topology.EndUnknown
		}
	}
	return running
}

// endOf is when the gang would end that is asked about.
func endOf(q question) int64 {
	if end := seconds(snapshot.ExpectedEnd(q.group)); end != someday {
		return end
	}
	return topology.EndUnknown
}

func seconds(end time.Time) int64 {
	if end.IsZero() {
		return someday
	}
	return end.Unix()
}

// needs is the gang with the fewest members that will do.
func needs(gang topology.Gang, needed int) topology.Gang {
	late := 0
	for _, m := range gang.Members {
		if m.Late {
			late++
		}
	}
	gang.Min = min(max(needed, 1)+late, len(gang.Members))
	return gang
}
