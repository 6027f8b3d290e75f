package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// binding returns the closed leases that an entity has to respect, in order: those of earlier entities that basic rule
// 3 does not let it use.
func (m *Machine) binding(e *Entity, now int64) []*Lease {
	var out []*Lease
	for _, l := range m.earlier(e) {
		if !l.Open && !m.endsBefore(e, l, now) && !m.yields(e, l, now) {
			out = append(out, l)
		}
	}
	return out
}

// earlier returns the leases of other owners that precede an entity, in order, but for those that it outranks. The
// slice may be the machine's.
func (m *Machine) earlier(e *Entity) []*Lease {
	n := 0
	for n < len(m.leases) && m.leases[n].Order.Compare(e.Order) < 0 {
		n++
	}
	out := m.leases[:n:n]
	if passes := func(l *Lease) bool { return l.Owner == e.ID || m.outranks(e, l) }; slices.ContainsFunc(out, passes) {
		out = slices.DeleteFunc(slices.Clone(out), passes)
	}
	return out
}

// endsBefore reports whether an entity that starts now ends before the instant of a lease, with a chance of overrun
// that the units which passed before leave room for (basic rule 3a).
func (m *Machine) endsBefore(e *Entity, l *Lease, now int64) bool {
	return l.Reason.waits() && !l.Late && e.RunTime > 0 && now+e.RunTime <= l.Instant &&
		l.Risk+e.Overrun <= m.policy.MaxOverrun
}

// yields reports whether the owner of a lease may evict the entity when it needs the place, and not at once (basic rule
// 3b). A place that victims leave is needed as soon as they have left. In a place that it shares with an earlier closed
// lease, an owner evicts no unit that is in the way of both.
func (m *Machine) yields(e *Entity, l *Lease, now int64) bool {
	if !l.preempts || !e.Preemptible || e.Order.Priority >= l.Order.Priority || l.Reason == Preemption {
		return false
	}
	return (l.Reason != Head || e.Grace < l.Instant-now) && !m.shares(l)
}

// shares reports whether an earlier closed lease has nodes of a lease's place.
func (m *Machine) shares(l *Lease) bool {
	for _, other := range m.leases {
		if other == l {
			return false
		}
		if !other.Open && other.Owner != l.Owner && other.touches(l.Nodes) {
			return true
		}
	}
	return false
}

// heldUntil returns the latest instant until which a node is leased for lost members that return, or for members that
// move there; false if there is none. Until then their unit is absent, and with it the end that an owner's place may
// rest on.
func (t *turn) heldUntil(owner *Entity, node int) (until int64, held bool) {
	for _, l := range t.before(owner) {
		if !l.Reason.waits() && l.Expiry != None && l.holdsNode(node) {
			until, held = max(until, l.Expiry, t.snap.Now), true
		}
	}
	return until, held
}

// beside returns the ledger available to a later entity: on each leased node, min(free now, free at the instant −
// leased), where only units with a firm end have left by the instant. It holds until the next call.
func (t *turn) beside(snap *Snapshot, leases []*Lease) topology.Ledger {
	needs := &t.scratch.sums
	needs.reset(snap.Ledger.Len())
	for _, l := range leases {
		for _, n := range l.needs {
			needs.add(n, l.Instant)
		}
	}
	out := &t.scratch.besides
	out.begin(snap.Ledger.Free, needs.nodes)
	for _, node := range needs.nodes {
		leave(out.own(node), snap, node, needs.of[node], needs.at[node])
	}
	return snap.Ledger.Differing(out.free, out.nodes)
}

// leave reduces a node's free capacity to the part left beside leases that need so much there, the first of them at
// instant.
func leave(left topology.Capacity, snap *Snapshot, node int, need topology.Capacity, instant int64) {
	for r := range left {
		left[r] -= at(need, r)
	}
	for _, u := range snap.Running.On(node) {
		if u.End.firm() && u.End.At > snap.Now && u.End.At <= instant {
			give(left, u.Holds, node)
		}
	}
	for r := range left {
		left[r] = max(0, min(snap.Ledger.Free[node][r], left[r]))
	}
}

// give adds the capacity held on a node to c.
func give(c topology.Capacity, holds []topology.Held, node int) {
	for _, h := range holds {
		if h.Node != node {
			continue
		}
		for r := range c {
			c[r] += at(h.Demand, r)
		}
	}
}

// at returns an entry of a capacity, 0 where there is none.
func at(c topology.Capacity, i int) int64 {
	if i < len(c) {
		return c[i]
	}
	return 0
}

// onNode returns the capacity held on one node.
func onNode(holds []topology.Held, node int) topology.Capacity {
	var c topology.Capacity
	for _, h := range holds {
		if h.Node == node {
			c = sum(c, h.Demand)
		}
	}
	return c
}

// covers reports whether the holds fit into the free capacity.
func covers(free []topology.Capacity, holds []topology.Held) bool {
	for node, demand := range demandOn(holds) {
		if !fitsIn(free[node], demand) {
			return false
		}
	}
	return true
}

func fitsIn(free, demand topology.Capacity) bool {
	for i, d := range demand {
		if d > at(free, i) {
			return false
		}
	}
	return true
}

// indebted returns the ledger and the expected ends for an entity that leases beside earlier leases, whatever becomes
// of those. Leased capacity is deducted from the ledger; on a node with less free than leased, the units that end first
// pay the difference before the node gives anything back. Both hold until the next call.
func (t *turn) indebted(
	snap *Snapshot,
	leases []*Lease,
	ends []topology.Running,
) (topology.Ledger, []topology.Running) {
	if len(leases) == 0 {
		return snap.Ledger, ends
	}
	debts := &t.scratch.sums
	debts.reset(snap.Ledger.Len())
	for _, l := range leases {
		for _, n := range l.needs {
			debts.add(n, None)
		}
	}
	out, owing := &t.scratch.debts, 0
	out.begin(snap.Ledger.Free, debts.nodes)
	for _, node := range debts.nodes {
		pay(out.own(node), debts.of[node])
		if owed(debts.of[node]) {
			owing++
		}
	}
	ledger := snap.Ledger.Differing(out.free, out.nodes)
	if owing == 0 {
		return ledger, ends
	}
	t.scratch.ends = append(t.scratch.ends[:0], ends...)
	t.scratch.paid.payAll(t.scratch.ends, debts, owing)
	return ledger, t.scratch.ends
}

// owed reports whether a debt is left.
func owed(debt topology.Capacity) bool {
	return slices.ContainsFunc(debt, func(n int64) bool { return n > 0 })
}

// pay takes a debt from the capacity there, as far as that suffices.
func pay(there, debt topology.Capacity) {
	for i := range there {
		if paid := min(there[i], at(debt, i)); paid > 0 {
			there[i] -= paid
			debt[i] -= paid
		}
	}
}

// payAll takes the debts of so many nodes from the capacity that the units give back there, in the order of their ends.
// It changes copies only.
func (p *paid) payAll(ends []topology.Running, debts *sums, owing int) {
	p.holds, p.pieces = p.holds[:0], p.pieces[:0]
	for i := range ends {
		if owing == 0 {
			return
		}
		var holds []topology.Held
		for j, h := range ends[i].Holds {
			if ends[i].End == topology.EndUnknown || !owed(debts.of[h.Node]) {
				continue
			}
			if holds == nil {
				holds = copied(&p.holds, ends[i].Holds)
			}
			holds[j].Demand = copied(&p.pieces, h.Demand)
			pay(holds[j].Demand, debts.of[h.Node])
			if !owed(debts.of[h.Node]) {
				owing--
			}
		}
		if holds != nil {
			ends[i].Holds = holds
		}
	}
}
