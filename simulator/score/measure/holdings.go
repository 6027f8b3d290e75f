package measure

import (
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// holdings holds the taken and the free resources, by the events alone.
type holdings struct {
	scene *scenario.Scenario
	// left is the room left on each node: below zero where more is taken than there is.
	left []topology.Capacity
	// free is the room as schedulers may see it: never below zero, and zero on nodes that are closed or gone.
	free topology.Ledger
	// there is true for each node on which units may start.
	there []bool
	// used are the accelerators in use on each node; inUse and capacity are sums over those that are there.
	used            []int64
	inUse, capacity int64
	// changed are the nodes with another free capacity since it was cleared; marked holds true for the nodes in it.
	changed []int
	marked  []bool
}

func newHoldings(s *scenario.Scenario) *holdings {
	n := s.Ledger.Len()
	h := &holdings{
		scene:  s,
		left:   make([]topology.Capacity, n),
		there:  make([]bool, n),
		used:   make([]int64, n),
		marked: make([]bool, n),
		free:   topology.Ledger{Tree: s.Ledger.Tree, Free: make([]topology.Capacity, n), Total: s.Ledger.Total},
	}
	for node, free := range s.Ledger.Free {
		h.left[node], h.free.Free[node] = slices.Clone(free), make(topology.Capacity, len(free))
		h.used[node] = h.total(node) - free[s.Accelerator]
		h.changes(node)
		if !s.Closed[node] {
			h.open(node)
		}
	}
	return h
}

// total returns the number of accelerators of the node.
func (h *holdings) total(node int) int64 { return h.scene.Ledger.Total[node][h.scene.Accelerator] }

// take takes a demand from a node, gives it back if sign is -1.
func (h *holdings) take(node int, demand topology.Capacity, sign int64) {
	for r, amount := range demand {
		h.left[node][r] -= sign * amount
	}
	if a := h.scene.Accelerator; a < len(demand) && demand[a] != 0 {
		h.used[node] += sign * demand[a]
		if h.there[node] {
			h.inUse += sign * demand[a]
		}
	}
	h.changes(node)
}

// open lets things start on the node.
func (h *holdings) open(node int) {
	if h.there[node] {
		return
	}
	h.there[node] = true
	h.capacity += h.total(node)
	h.inUse += h.used[node]
	h.changes(node)
}

// shut lets nothing start on the node.
func (h *holdings) shut(node int) {
	if !h.there[node] {
		return
	}
	h.there[node] = false
	h.capacity -= h.total(node)
	h.inUse -= h.used[node]
	h.changes(node)
}

// changes updates the visible free capacity of the node.
func (h *holdings) changes(node int) {
	for r, left := range h.left[node] {
		if !h.there[node] {
			left = 0
		}
		h.free.Free[node][r] = max(left, 0)
	}
	if !h.marked[node] {
		h.marked[node] = true
		h.changed = append(h.changed, node)
	}
}

// overdrawn reports whether a demand that was taken from the node was more than it had.
func (h *holdings) overdrawn(node int, demand topology.Capacity) (devices, others bool) {
	others = !h.there[node]
	for r, amount := range demand {
		if amount == 0 || h.left[node][r] >= 0 {
			continue
		}
		if r == h.scene.Accelerator && h.scene.Devices[node] {
			devices = true
		} else {
			others = true
		}
	}
	return devices, others
}
