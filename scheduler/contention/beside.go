package contention

import (
	"maps"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// binding returns the closed leases that an entity has to respect, in order: those of earlier entities that rule 3 does not
// let it use.
func (m *Machine) binding(e *Entity, now int64) []*Lease {
	return slices.DeleteFunc(m.earlier(e), func(l *Lease) bool {
		return l.Open || m.endsBefore(e, l, now) || yields(e, l, now)
	})
}

// earlier returns the leases of other owners that precede an entity, in order.
func (m *Machine) earlier(e *Entity) []*Lease {
	var out []*Lease
	for _, l := range m.leases {
		if l.Owner != e.ID && l.Order.Compare(e.Order) < 0 {
			out = append(out, l)
		}
	}
	return out
}

// endsBefore reports whether an entity that starts now ends before the instant of a lease, with a chance of overrun that the
// units which passed before leave room for (rule 3a).
func (m *Machine) endsBefore(e *Entity, l *Lease, now int64) bool {
	return l.Reason.waits() && !l.Late && e.RunTime > 0 && now+e.RunTime <= l.Instant &&
		l.Risk+e.Overrun <= m.policy.MaxOverrun
}

// yields reports whether the owner of a lease may evict the entity when it needs the place, and not at once (rule 3b). A place that
// victims leave is needed as soon as they have left.
func yields(e *Entity, l *Lease, now int64) bool {
	if !l.preempts || !e.Preemptible || e.Order.Priority >= l.Order.Priority || l.Reason == Preemption {
		return false
	}
	return l.Reason != Head || now+e.Grace < l.Instant
}

// beside returns the ledger as a later entity may use it: on each leased node, min(free now, free at the instant − leased), where
// only units with a firm end are gone at the instant.
func beside(w *World, leases []*Lease) topology.Ledger {
	needs := make(map[int]topology.Capacity)
	instants := make(map[int]int64)
	for _, l := range leases {
		for node, demand := range demandOn(w.held(l)) {
			needs[node] = sum(needs[node], demand)
			if at, ok := instants[node]; !ok || l.Instant < at {
				instants[node] = l.Instant
			}
		}
	}
	free := slices.Clone(w.Ledger.Free)
	for node, need := range needs {
		free[node] = besideOn(free[node], need, firmlyGone(w.Running.On(node), node, w.Now, instants[node]))
	}
	return w.Ledger.Differing(free, slices.Sorted(maps.Keys(needs)))
}

// besideOn returns min(free, free + freed − need), at least 0.
func besideOn(free, need, freed topology.Capacity) topology.Capacity {
	out := slices.Clone(free)
	for i := range out {
		then := out[i] + at(freed, i) - at(need, i)
		out[i] = max(0, min(out[i], then))
	}
	return out
}

// at returns an entry of a capacity, 0 where there is none.
func at(c topology.Capacity, i int) int64 {
	if i < len(c) {
		return c[i]
	}
	return 0
}

// firmlyGone returns what the units that are known to end by the instant give back on a node.
func firmlyGone(units []*Unit, node int, now, instant int64) topology.Capacity {
	var freed topology.Capacity
	for _, u := range units {
		if u.End.firm() && u.End.At > now && u.End.At <= instant {
			freed = sum(freed, onNode(u.Holds, node))
		}
	}
	return freed
}

// onNode returns what is held on one node.
func onNode(holds []topology.Held, node int) topology.Capacity {
	var c topology.Capacity
	for _, h := range holds {
		if h.Node == node {
			c = sum(c, h.Demand)
		}
	}
	return c
}

// covers reports whether the holds fit into what is free.
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

// indebted returns the ledger and the expected ends as they are for an entity that leases beside earlier leases, whatever
// becomes of those: what is leased is gone from the ledger, and a node that has less free than is leased gives nothing back
// before the units that end there first have paid for that.
func indebted(w *World, leases []*Lease, ends []topology.Running) (topology.Ledger, []topology.Running) {
	if len(leases) == 0 {
		return w.Ledger, ends
	}
	debts := make(map[int]topology.Capacity)
	for _, l := range leases {
		for node, demand := range demandOn(w.held(l)) {
			debts[node] = sum(debts[node], demand)
		}
	}
	free := slices.Clone(w.Ledger.Free)
	nodes := slices.Sorted(maps.Keys(debts))
	for _, node := range nodes {
		free[node] = pay(free[node], debts[node])
	}
	return w.Ledger.Differing(free, nodes), payAll(ends, debts)
}

// pay takes a debt from what is there, as far as there is something, and returns what is left of that.
func pay(there, debt topology.Capacity) topology.Capacity {
	left := slices.Clone(there)
	for i := range left {
		paid := min(left[i], at(debt, i))
		if paid > 0 {
			left[i] -= paid
			debt[i] -= paid
		}
	}
	return left
}

// payAll takes the debts of nodes from what the units give back there, in the order of their ends.
func payAll(ends []topology.Running, debts map[int]topology.Capacity) []topology.Running {
	owed := func(node int) bool {
		return slices.ContainsFunc(debts[node], func(n int64) bool { return n > 0 })
	}
	out := slices.Clone(ends)
	for i := range out {
		if out[i].End == topology.EndUnknown ||
			!slices.ContainsFunc(out[i].Holds, func(h topology.Held) bool { return owed(h.Node) }) {
			continue
		}
		holds := slices.Clone(out[i].Holds)
		for j, h := range holds {
			if owed(h.Node) {
				holds[j].Demand = pay(h.Demand, debts[h.Node])
			}
		}
		out[i].Holds = holds
	}
	return out
}
