package direct

import (
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/topology"
)

// EASY backfill (Lifka, "The ANL/IBM SP Scheduling System", 1995) over a policy's placements: a place is kept for the first
// gang that waits at the earliest instant at which the policy has one for it, and whoever does not delay that passes.

// keepBy finds the earliest instant at which the policy places the head when what runs ends as expected; nil if nobody's end
// would help. Departures are taken to help always, so that the search halves what is left.
func (e *player) keepBy(head decision.Ask) *topology.Reservation {
	var instants []int64
	for _, r := range e.running {
		if r.End != topology.EndUnknown {
			instants = append(instants, r.End)
		}
	}
	slices.Sort(instants)
	instants = slices.Compact(instants)
	kept := topology.Reservation{Placement: topology.Placement{Gang: head.Gang.Name}}
	at := func(instant int64) bool {
		then := e.then(instant)
		gang, nodes, ok := e.placeBy(then, head)
		if ok {
			kept.At, kept.Placement.Nodes = instant, nodes
			e.head.gang, e.head.then = gang, then
		}
		return ok
	}
	low, high := 0, len(instants)-1
	if high < 0 || !at(instants[high]) {
		return nil
	}
	for low < high {
		if middle := low + (high-low)/2; at(instants[middle]) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return &kept
}

// then is the ledger at an instant, if what runs ends as expected. What it shares with the present is not changed by anybody.
func (e *player) then(instant int64) topology.Ledger {
	l := e.ledger
	l.Free = slices.Clone(l.Free)
	own := make([]bool, len(l.Free))
	for _, r := range e.running {
		if r.End == topology.EndUnknown || r.End > instant {
			continue
		}
		for _, held := range r.Holds {
			if !own[held.Node] {
				own[held.Node], l.Free[held.Node] = true, slices.Clone(l.Free[held.Node])
			}
			for resource, amount := range held.Demand {
				l.Free[held.Node][resource] += amount
			}
		}
	}
	return l
}

// followBy is follow by a policy: who comes after the head goes where the policy says or, if that would delay the head,
// where it says beside the head's place.
func (e *player) followBy(l *lane) {
	i, ask := e.ask(l)
	asked := e.measure(ask)
	gang, nodes, ok := e.placeBy(e.ledger, ask)
	if !ok {
		asked.answered(false)
		l.closed = 0
		return
	}
	ok = e.passes(ask, gang, nodes)
	if !ok {
		gang, nodes, ok = e.placeBy(e.beside(), ask)
		ok = ok && e.passes(ask, gang, nodes)
	}
	asked.answered(ok)
	if !ok {
		l.closed = l.spots[l.next].promise
		return
	}
	p := topology.Placement{Gang: gang.Name, Nodes: nodes}
	if ask.End == topology.EndUnknown || ask.End > e.head.reserved.At {
		e.head.then = e.head.then.Beside(gang, p)
	}
	e.start(i, gang, p)
}

// beside is the ledger without the nodes that are kept.
func (e *player) beside() topology.Ledger {
	l := e.ledger
	l.Free = slices.Clone(l.Free)
	for _, node := range e.head.reserved.Placement.Nodes {
		l.Free[node] = make(topology.Capacity, len(l.Free[node]))
	}
	return l
}

// passes reports whether a gang on these nodes leaves the head its place: it is gone by then, touches nothing of it, or the
// policy has another one for the head at the same instant, which is kept from then on. Of a place that is free someday nobody
// is gone in time.
func (e *player) passes(ask decision.Ask, gang topology.Gang, nodes []int) bool {
	kept := e.head.reserved
	apart := !slices.ContainsFunc(nodes, func(node int) bool { return e.head.keeps[node] })
	if apart || kept.At >= decision.Someday || ask.End != topology.EndUnknown && ask.End <= kept.At {
		return apart || kept.At < decision.Someday
	}
	placement := topology.Placement{Nodes: nodes}
	place, ok := e.options.Policy.Place(e.head.then.Beside(gang, placement), e.head.gang)
	if !ok || !e.sound(e.head.gang, place) {
		return false
	}
	e.keep(topology.Reservation{At: kept.At, Placement: topology.Placement{Gang: kept.Placement.Gang, Nodes: place}})
	return true
}
