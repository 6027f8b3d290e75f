package contention

import (
	"cmp"
	"maps"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Awaited returns the units that must leave the place of a lease before its owner starts there, the last to end first.
// On each node these are the units that are expected to end first, without any whose part the owner does not need.
// Explanations use it: together with the lease's instant, it gives the reason for the start time.
func (m *Machine) Awaited(owner ID, snap *Snapshot) []Expectation {
	m.enter(snap)
	l, s := m.Lease(owner), m.queue.spots[owner]
	if l == nil || s == nil {
		return nil
	}
	t := &turn{Machine: m, snap: snap, s: s, earlier: m.earlier(&s.Entity)}
	found := make(map[ID]Expectation)
	all, debts := t.claims(snap, &s.Entity, l.needs)
	for _, n := range l.needs {
		for _, x := range t.awaitedOn(n.node, all.of[n.node], debts.of[n.node]) {
			found[x.Unit.ID] = x
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Expectation) int {
		return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(a.Unit.ID, b.Unit.ID))
	})
}

// awaitedOn returns the units that have to leave a node before a need is free there, the debt to earlier leases without
// evictions (see readyAt).
func (t *turn) awaitedOn(node int, need, debt topology.Capacity) []Expectation {
	snap, owner := t.snap, &t.s.Entity
	if fitsIn(snap.Ledger.Free[node], need) {
		return nil
	}
	here := slices.Clone(t.endsOn(snap, owner, node))
	at, ok := t.freeAt(snap, owner, node, need, debt, here)
	firm := slices.DeleteFunc(slices.Clone(here), func(x Expectation) bool { return !x.Firm })
	if sooner, found := t.freeAt(snap, owner, node, need, debt, firm); found && (!ok || sooner <= at) {
		here, at, ok = firm, sooner, true
	}
	if !ok {
		return nil // the remaining units do not end
	}
	here = slices.DeleteFunc(here, func(x Expectation) bool { return x.At > at })
	for i := range slices.Backward(here) {
		without := slices.Delete(slices.Clone(here), i, i+1)
		if _, enough := t.freeAt(snap, owner, node, need, debt, without); enough {
			here = without
		}
	}
	return here
}
