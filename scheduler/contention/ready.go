package contention

import (
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// look returns the instant at which a place is expected to be free for an owner; false if it never is, or if nodes of
// it no longer exist.
func (t *turn) look(snap *Snapshot, owner *Entity, holds []topology.Held, needs []need) (prospect, bool) {
	out := prospect{Holds: holds, Instant: snap.Now, Firm: true}
	sums, debts := t.claims(snap, owner, needs)
	for _, n := range needs {
		at, firm, ok := t.readyAt(snap, owner, n.node, sums.of[n.node], debts.of[n.node])
		if !ok {
			return prospect{}, false
		}
		sums.at[n.node] = at
		out.Instant, out.Firm = max(out.Instant, at), out.Firm && firm
	}
	for _, n := range needs {
		out.ToCome += snap.accelerators(n.demand) * min(out.Instant-sums.at[n.node], math.MaxInt32)
	}
	return out, true
}

// claims returns by node the capacity that has to be free for the owner and all earlier leases there, and the part of
// it that earlier closed leases take. Both hold until the next call.
func (t *turn) claims(snap *Snapshot, owner *Entity, needs []need) (all, closed *sums) {
	all, closed = &t.scratch.sums, &t.scratch.closed
	all.reset(snap.Ledger.Len())
	closed.reset(snap.Ledger.Len())
	for _, n := range needs {
		all.add(n, None)
	}
	for _, l := range t.before(owner) {
		for _, n := range l.needs {
			if len(all.of[n.node]) == 0 {
				continue
			}
			if all.add(n, None); !l.Open {
				closed.add(n, None)
			}
		}
	}
	return all, closed
}

// readyAt returns the instant at which a node is expected to have a demand free, and whether that is firm; false if it
// never has. Capacity that is free without evictions has to cover the debt to earlier leases: the owner evicts for
// itself only. A node of a place that is away for less than the grace is expected back.
func (t *turn) readyAt(
	snap *Snapshot,
	owner *Entity,
	node int,
	need, debt topology.Capacity,
) (at int64, firm, ok bool) {
	if since, away := snap.away(node); away {
		return snap.Now, true, snap.Now-since < t.policy.Grace
	}
	if closedTo(owner.Ask.Gang, node) {
		return 0, false, false
	}
	free := snap.Ledger.Free[node]
	if fitsIn(free, need) {
		return snap.Now, true, true
	}
	here := t.endsOn(snap, owner, node)
	at, ok = t.freeAt(snap, owner, node, need, debt, here)
	firmly := slices.DeleteFunc(here, func(x Expectation) bool { return !x.Firm })
	if sooner, found := t.freeAt(snap, owner, node, need, debt, firmly); found && (!ok || sooner <= at) {
		return sooner, true, true
	}
	if until, held := t.heldUntil(owner, node); !ok && held {
		return until, true, true
	}
	return at, false, ok
}

// closedTo reports whether no member of a gang may use a node.
func closedTo(gang topology.Gang, node int) bool {
	return len(gang.Shapes) > 0 && !slices.ContainsFunc(gang.Shapes, func(s topology.Shape) bool {
		return node >= len(s.Barred) || s.Barred[node] == ""
	})
}

// endsOn returns the units on a node by their expected end. It holds until the next call.
func (t *turn) endsOn(snap *Snapshot, owner *Entity, node int) []Expectation {
	here := t.scratch.here[:0]
	for _, u := range snap.Running.On(node) {
		if x := expectation(u, snap.Now, t.policy.MinRemaining); x.At != None && u.gang() != owner.ID {
			here = append(here, x)
		}
	}
	slices.SortFunc(here, compareExpectations)
	t.scratch.here = here
	return here
}

// freeAt returns when a node has a need free if these units end and the owner evicts others, false if it never has.
func (t *turn) freeAt(
	snap *Snapshot, owner *Entity, node int, need, debt topology.Capacity, ends []Expectation,
) (int64, bool) {
	t.scratch.free = append(t.scratch.free[:0], snap.Ledger.Free[node]...)
	t.scratch.all = append(t.scratch.all[:0], snap.Ledger.Free[node]...)
	free, all := t.scratch.free, t.scratch.all // all includes units that the owner may evict
	for _, u := range snap.Running.On(node) {
		if t.evictable(u, owner) {
			give(all, u.Holds, node)
		}
	}
	if fitsIn(free, debt) && fitsIn(all, need) {
		return snap.Now, true
	}
	for _, x := range ends {
		if give(free, x.Unit.Holds, node); !t.evictable(x.Unit, owner) {
			give(all, x.Unit.Holds, node)
		}
		if fitsIn(free, debt) && fitsIn(all, need) {
			return x.At, true
		}
	}
	return 0, false
}
