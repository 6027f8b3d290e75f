package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// need is the demand of a place on one of its nodes.
type need struct {
	node   int
	demand topology.Capacity
}

func (n need) equal(other need) bool {
	return n.node == other.node && slices.Equal(n.demand, other.demand)
}

// needsOf returns the demand of the holds, by node.
func needsOf(holds []topology.Held) []need {
	out := make([]need, 0, len(holds))
	for _, h := range holds {
		out = append(out, need{h.Node, h.Demand})
	}
	slices.SortStableFunc(out, func(a, b need) int { return a.node - b.node })
	last := 0
	for i := 1; i < len(out); i++ {
		if out[i].node == out[last].node {
			out[last].demand = sum(slices.Clone(out[last].demand), out[i].demand)
			continue
		}
		last++
		out[last] = out[i]
	}
	return out[:min(last+1, len(out))]
}

// scratch is memory that one evaluation after the other uses.
type scratch struct {
	sums, closed sums
	ends         []topology.Running
	// gone lists units that are assumed to have ended.
	gone []topology.Running
	here []Expectation
	// free and all are capacities of one node.
	free, all topology.Capacity
	// besides, debts and taken are ledgers for beside, indebted and taken.
	besides, debts, taken ledger
	paid                  paid
}

// paid is memory for the capacity that units give back when debts are paid.
type paid struct {
	holds  []topology.Held
	pieces []int64
}

// copied appends a copy to memory and returns it. Earlier copies are unchanged, wherever the memory moves to.
func copied[T any](memory *[]T, of []T) []T {
	from := len(*memory)
	*memory = append(*memory, of...)
	return (*memory)[from:len(*memory):len(*memory)]
}

// ledger is memory for a ledger that differs from another one on some nodes.
type ledger struct {
	free   []topology.Capacity
	pieces []int64
	nodes  []int
}

// begin copies the free capacity, for changes on these nodes.
func (l *ledger) begin(free []topology.Capacity, nodes []int) {
	l.free, l.pieces, l.nodes = append(l.free[:0], free...), l.pieces[:0], append(l.nodes[:0], nodes...)
	room := 0
	for _, node := range nodes {
		room += len(free[node])
	}
	l.pieces = slices.Grow(l.pieces, room)
}

// own replaces the free capacity of a node by a copy, and returns the copy.
func (l *ledger) own(node int) topology.Capacity {
	l.free[node] = copied(&l.pieces, l.free[node])
	return l.free[node]
}

// sums adds capacities up by node.
type sums struct {
	of    []topology.Capacity
	nodes []int
	// at are instants by node.
	at []int64
}

// reset forgets all, for a fleet of so many nodes.
func (s *sums) reset(nodes int) {
	for _, node := range s.nodes {
		s.of[node] = s.of[node][:0]
	}
	s.nodes = s.nodes[:0]
	if len(s.of) < nodes {
		s.of, s.at = make([]topology.Capacity, nodes), make([]int64, nodes)
	}
}

// add adds a capacity of a node, and retains the earliest instant.
func (s *sums) add(n need, at int64) {
	if len(s.of[n.node]) == 0 {
		s.nodes, s.at[n.node] = append(s.nodes, n.node), at
	}
	s.of[n.node], s.at[n.node] = sum(s.of[n.node], n.demand), min(s.at[n.node], at)
}

// take subtracts a capacity of a node.
func (s *sums) take(n need) {
	if len(s.of[n.node]) == 0 {
		s.nodes, s.at[n.node] = append(s.nodes, n.node), None
	}
	s.of[n.node] = less(s.of[n.node], n.demand)
}

// beyond returns, by node, what units give back that are assumed to have ended, less what is owed to leases. It holds
// until the sums are used again.
func (s *sums) beyond(nodes int, gone []topology.Running, owed []*Lease) []topology.Capacity {
	s.reset(nodes)
	for _, of := range gone {
		for _, h := range of.Holds {
			s.add(need{h.Node, h.Demand}, None)
		}
	}
	for _, l := range owed {
		for _, n := range l.needs {
			s.take(n)
		}
	}
	return s.of
}

// less returns a - b. It may change a.
func less(a, b topology.Capacity) topology.Capacity {
	for len(a) < len(b) {
		a = append(a, 0)
	}
	for i, n := range b {
		a[i] -= n
	}
	return a
}

// holding adds the capacity held on a node to c, which it may change.
func holding(c topology.Capacity, holds []topology.Held, node int) topology.Capacity {
	for _, h := range holds {
		if h.Node == node {
			c = sum(c, h.Demand)
		}
	}
	return c
}
