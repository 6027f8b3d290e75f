package whatif

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
	"github.com/lockstep-project/lockstep/topology"
)

// reservations are the places that the queue leases when it is at rest, by owner.
type reservations map[types.NamespacedName]Reservation

// reservations reads them.
func (r *run) reservations(ctx context.Context) (reservations, error) {
	out := make(reservations)
	for _, of := range r.queue.Leases() {
		g := r.gangs[of.Owner]
		if g == nil {
			continue
		}
		x, err := r.read(ctx, g)
		if errors.Is(err, waiting.ErrRequest) {
			continue
		}
		if err != nil {
			return nil, err
		}
		l := of.Lease
		held := Reservation{
			For: of.Owner, Reason: l.Reason, At: instant(l.Instant), Estimated: !l.Firm, Open: l.Open,
			Where: *r.reserved(l.Owner, x),
		}
		if len(l.Within.Path) > 0 {
			held.Where.Within = l.Within
		}
		if held.At.IsZero() {
			held.Estimated = false
		}
		for _, e := range r.queue.Awaited(x) {
			held.Waits = append(held.Waits, Waited{
				Name: string(e.Unit.ID), End: time.Unix(e.At, 0).UTC(), Estimated: !e.Firm,
				Accelerators: e.Unit.Accelerators,
				Overdue:      e.Unit.End.At > 0 && e.Unit.End.At <= r.now.Unix(),
			})
		}
		out[of.Owner] = held
	}
	return out, nil
}

// reserved says where the leased place of an entity is.
func (r *run) reserved(owner contention.ID, x *waiting.Question) *Where {
	out, gang := &Where{}, contention.Ask{Gang: x.Choices[0].Gang, Needed: x.Needed()}.Fewest()
	var waits []MemberPlace
	for rank, m := range gang.Members {
		if !m.Placed {
			waits = append(waits, MemberPlace{Rank: rank, Member: m.Name, Late: m.Late, New: true})
		}
	}
	for i, name := range r.queue.LeasedNodes(owner) {
		node, ok := x.View.Tree.Index(name)
		if !ok {
			continue
		}
		member := MemberPlace{Rank: i, New: true}
		if i < len(waits) {
			member = waits[i]
		}
		out.add(x.View, node, member)
	}
	out.Within = common(out.Members)
	return out
}

// of returns a verdict with the gang's reservation, and with those that it is behind.
func (all reservations) of(v Verdict) Verdict {
	if v.State != Waits {
		return v
	}
	if own, ok := all[v.Gang.Name]; ok && (own.Reason == contention.Head || own.Reason == contention.Preemption) {
		v.Reserved = &own
	}
	if v.Behind == nil {
		return v
	}
	behind := *v.Behind
	behind.Of = nil
	for _, of := range v.Behind.Of {
		if held, ok := all[of.For]; ok {
			of = held
		}
		behind.Of = append(behind.Of, of)
	}
	v.Behind = &behind
	return v
}

// placed says where the members of a gang run.
func placed(gang topology.Gang) (topology.Gang, topology.Placement) {
	out := topology.Placement{Gang: gang.Name}
	members := gang.Members
	gang.Members = nil
	for _, m := range members {
		if m.Placed {
			gang.Members, out.Nodes = append(gang.Members, m), append(out.Nodes, m.Node)
		}
	}
	return gang, out
}
