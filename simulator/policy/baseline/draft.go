package baseline

import (
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// The node of a member that has none yet.
const none = -1

// draft is a placement in progress: the nodes of the members so far, and the capacity left beside them.
type draft struct {
	ledger topology.Ledger
	gang   topology.Gang
	nodes  []int
	// left is the free room of the nodes that the draft takes something of.
	left map[int]topology.Capacity
}

// newDraft begins with the members that are placed already; their capacity is already taken from the ledger.
func newDraft(l topology.Ledger, gang topology.Gang) *draft {
	d := &draft{ledger: l, gang: gang, nodes: make([]int, len(gang.Members)), left: make(map[int]topology.Capacity)}
	for rank, m := range gang.Members {
		d.nodes[rank] = none
		if m.Placed {
			d.nodes[rank] = m.Node
		}
	}
	return d
}

// waiting are the ranks that have no node, by shape.
func (d *draft) waiting() [][]int {
	ranks := make([][]int, len(d.gang.Shapes))
	for rank, m := range d.gang.Members {
		if d.nodes[rank] == none {
			ranks[m.Shape] = append(ranks[m.Shape], rank)
		}
	}
	return ranks
}

func (d *draft) free(node int) topology.Capacity {
	if left, ok := d.left[node]; ok {
		return left
	}
	return d.ledger.Free[node]
}

// room returns the number of further members of the shape that the node takes, at most the limit.
func (d *draft) room(shape, node, limit int) int {
	s := &d.gang.Shapes[shape]
	if node < len(s.Barred) && s.Barred[node] != "" {
		return 0
	}
	return times(d.free(node), s.Demand, limit)
}

// counts returns the number of further members of the shape that each node takes, by its number.
func (d *draft) counts(shape int) []int {
	s := &d.gang.Shapes[shape]
	out := make([]int, len(d.ledger.Free))
	for node, free := range d.ledger.Free {
		if node >= len(s.Barred) || s.Barred[node] == "" {
			out[node] = times(free, s.Demand, math.MaxInt32)
		}
	}
	for node := range d.left {
		out[node] = d.room(shape, node, math.MaxInt32)
	}
	return out
}

// times returns the number of times that a demand fits, at most the limit.
func times(free, demand topology.Capacity, limit int) int {
	n := int64(limit)
	for r, want := range demand {
		if want <= 0 {
			continue
		}
		if r >= len(free) || free[r] < want {
			return 0
		}
		n = min(n, free[r]/want)
	}
	return int(n)
}

// put places a member; the node has room for it.
func (d *draft) put(rank, node int) {
	left, ok := d.left[node]
	if !ok {
		left = slices.Clone(d.ledger.Free[node])
		d.left[node] = left
	}
	for r, want := range d.gang.Shapes[d.gang.Members[rank].Shape].Demand {
		if want > 0 {
			left[r] -= want
		}
	}
	d.nodes[rank] = node
}

// fleet holds a policy's data of a tree, which never changes.
type fleet struct {
	tree *topology.Tree
	// numbers are the nodes' numbers, ascending; vacant ones are left out.
	numbers []int
}

// of returns the nodes of the tree, made once.
func (f *fleet) of(tree *topology.Tree) []int {
	if f.tree != tree {
		f.tree, f.numbers = tree, f.numbers[:0]
		for node := range tree.Len() {
			if tree.Node(node) != "" {
				f.numbers = append(f.numbers, node)
			}
		}
	}
	return f.numbers
}

// most is the largest number of members that a node takes when it is idle, by their demand. Totals never change while a
// ledger has them.
type most struct {
	totals *topology.Capacity
	known  []perNode
}

// perNode is the number of members of a demand that the largest node takes.
type perNode struct {
	demand  topology.Capacity
	members int
}

// of returns the number of members that the largest node would take if it were idle; 1 at least. Without totals it is
// the node with most room.
func (m *most) of(l topology.Ledger, demand topology.Capacity) int {
	if len(l.Total) == 0 {
		return largest(l.Free, demand)
	}
	if m.totals != &l.Total[0] {
		m.totals, m.known = &l.Total[0], nil
	}
	for _, k := range m.known {
		if slices.Equal(k.demand, demand) {
			return k.members
		}
	}
	n := largest(l.Total, demand)
	m.known = append(m.known, perNode{slices.Clone(demand), n})
	return n
}

// largest returns the largest number of times that a demand fits into one of the capacities; 1 at least.
func largest(of []topology.Capacity, demand topology.Capacity) int {
	n := 1
	for _, c := range of {
		n = max(n, times(c, demand, math.MaxInt32))
	}
	return n
}
