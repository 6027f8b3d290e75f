package gangplacement

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/scheduler/devices"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/reservation"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// placeInTurn places the gang, unless another one is before it in the queue that has no room yet: then only where, and for as
// long as, that one is not delayed by it. A gang that runs already gets its lost members back whoever waits.
func (p *GangPlacement) placeInTurn(
	ctx context.Context, q question, view snapshot.View, asked devices.Asked,
) (decision.Answer, topology.Ledger) {
	ask := decision.Ask{Gang: asked.Gang, Needed: q.needed, End: p.endOf(q)}
	head := p.book.Before(q.group)
	if q.fleet != asItIs || head == nil || len(q.running) > 0 {
		return decision.Place(asked.Ledger, ask), asked.Ledger
	}
	pair, holds, err := p.behind(ctx, q, view, asked, head)
	if err != nil {
		return decision.Place(asked.Ledger, ask), asked.Ledger
	}
	alone := ask
	ask.Gang, q.holds = pair.Gang, holds
	turn := decision.Turn{
		Head:    decision.Ask{Gang: pair.First, Needed: head.Needed},
		Running: func() []topology.Running { return p.ends(q, view) },
		Apart:   pair.Apart,
		Keeps: func(node int) bool {
			_, kept := head.Rooms[view.Tree.Node(node)]
			return kept
		},
	}
	answer, kept := turn.Behind(pair.Ledger, ask)
	if kept != nil {
		p.write(*head, view, pair.First, *kept)
	}
	if answer.Refusal != nil { // whom it may end for its own place is asked without the first
		return answer.Of(alone), asked.Ledger
	}
	return answer, pair.Ledger
}

// displace is for a gang that starts before the first of those that wait, in the place that is kept for it: that one gets another
// place, later, and who was refused for the sake of the old one may pass. Nobody has left, so nobody else would ask them.
func (p *GangPlacement) displace(q question, plan *plan) {
	head := p.book.Head()
	if head == nil || head.Group.UID == q.group.UID || p.book.Before(q.group) != nil {
		return // it made sure itself that the first is not delayed
	}
	for _, pin := range plan.pins {
		if _, kept := head.Rooms[pin.node]; kept {
			p.lot.Change()
			return
		}
	}
}

// reserve keeps a place for a gang that has no room, if it is the first of the queue, and if the end of what runs would help. It
// returns what is to be added to why it waits.
func (p *GangPlacement) reserve(q question, view snapshot.View, ledger topology.Ledger, gang topology.Gang) string {
	if len(q.running) > 0 || p.book.Before(q.group) != nil {
		return ""
	}
	kept := decision.Keep(ledger, p.ends(q, view), decision.Ask{Gang: gang, Needed: q.needed})
	if kept == nil {
		p.book.Drop(q.group.UID)
		return ""
	}
	head := reservation.Head{Key: q.key, Group: q.group, Waiting: q.waiting, Needed: q.needed}
	when := "when enough of what runs has ended"
	if kept.At < decision.Someday {
		head.Expected = time.Unix(kept.At, 0)
		when = "expected at " + head.Expected.UTC().Format(time.RFC3339)
	}
	p.write(head, view, gang, *kept)
	return "; it is the first of the queue, a place is kept for it in " + kept.Placement.Within.String() + ", " + when
}

// starts gives the gang's own reservation back, and counts how good it was.
func (p *GangPlacement) starts(q question) {
	kept := p.book.Drop(q.group.UID)
	if kept == nil {
		return
	}
	late := p.clock.Since(kept.Expected)
	switch {
	case kept.Expected.IsZero():
		metrics.Reservations.WithLabelValues(metrics.ReservationOpen).Inc()
		return
	case late > 0:
		metrics.Reservations.WithLabelValues(metrics.ReservationLate).Inc()
	default:
		metrics.Reservations.WithLabelValues(metrics.ReservationKept).Inc()
	}
	metrics.ReservationError.Observe(late.Abs().Seconds())
}

// write keeps the reservation, with the room that it takes on each node.
func (p *GangPlacement) write(
	head reservation.Head, view snapshot.View, gang topology.Gang, reserved topology.Reservation,
) {
	head.At = reserved.At
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

// ends are all that runs, and when it ends.
func (p *GangPlacement) ends(q question, view snapshot.View) []topology.Running {
	units := view.Units(p.handle.SnapshotSharedLister().PodGroups())
	if q.holds != nil {
		units = q.holds(units)
	}
	return snapshot.Ends(units)
}

// endOf is when the gang would end that is asked about. An end that should have come already says nothing.
func (p *GangPlacement) endOf(q question) int64 {
	if end := snapshot.EndOf(q.group); end > p.clock.Now().Unix() {
		return end
	}
	return topology.EndUnknown
}

// park lets the gang wait until something changes, with those that ask the same. Of gangs behind the first one those that end before
// it needs its place ask another question than the others: they may pass where these may not.
func (p *GangPlacement) park(q question, gang topology.Gang) {
	ask := decision.Question(gang)
	if head := p.book.Before(q.group); head != nil && p.endOf(q) <= head.At {
		ask += "/in time"
	}
	p.lot.Park(q.group, snapshot.QueuedAt(q.group), ask, q.seen)
}

// overtakes parks a gang that would be before others which are about to be asked. It reports whether it did.
func (p *GangPlacement) overtakes(q question, gang topology.Gang) bool {
	since := snapshot.QueuedAt(q.group)
	if q.fleet != asItIs || len(q.running) > 0 || !p.lot.Overtakes(q.group, since) {
		return false
	}
	p.explain.Queued(q.group)
	metrics.Shortfalls.WithLabelValues(ruleTurn).Inc()
	p.park(q, decision.Ask{Gang: gang, Needed: q.needed}.Least())
	return true
}
