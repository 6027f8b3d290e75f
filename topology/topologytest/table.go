package topologytest

import (
	"math"

	"github.com/lockstep-project/lockstep/topology"
)

// Unplaceable is the cost of a gang that has no place.
const Unplaceable = math.MaxInt64

// Table is the least cost of a gang of one kind without rules, by the plainest table there is: for every vertex and
// every number of members the least over all ways to divide them among the children, one child after another. It is for
// fleets too large to try everything, and shares no trick with the package it checks.
func (s Scene) Table() int64 {
	g := s.grow()
	members := len(s.Gang.Members)
	inside := make([][]int64, len(g)) // least cost of n members in a limb, its own use not counted
	best := int64(Unplaceable)
	for v := len(g) - 1; v >= 0; v-- {
		inside[v] = s.tabulate(g, v, inside, members)
		if cost := inside[v][members]; cost != Unplaceable {
			best = min(best, s.settle(g[v].level, cost))
		}
	}
	return best
}

func (s Scene) tabulate(g grove, v int, inside [][]int64, members int) []int64 {
	table := make([]int64, members+1)
	for n := range table {
		if n > 0 && (len(g[v].children) > 0 || n > g[v].slots) {
			table[n] = Unplaceable
		}
	}
	for _, c := range g[v].children {
		next := make([]int64, members+1)
		for n := range next {
			next[n] = Unplaceable
			for here := range n + 1 {
				if inside[c][here] != Unplaceable && table[n-here] != Unplaceable {
					next[n] = min(next[n], table[n-here]+inside[c][here]+s.use(g, c, here))
				}
			}
		}
		table = next
	}
	return table
}

// use returns the cost of a limb's use by so many members.
func (s Scene) use(g grove, v, members int) int64 {
	var weight int64
	for l, w := range s.Weights() {
		if l > g[g[v].parent].level && l <= g[v].level {
			weight += w
		}
	}
	switch {
	case members == 0:
		return 0
	case s.Gang.Communication == topology.AllToAll:
		return weight * int64(members) * int64(len(s.Gang.Members)-members)
	}
	return weight
}

// settle turns the sum of uses inside the limb around all members into a cost.
func (s Scene) settle(level int, cost int64) int64 {
	switch s.Gang.Communication {
	case topology.AllToAll:
		return cost / 2
	case topology.Chain:
		for l, w := range s.Weights() {
			if l > level {
				cost -= w
			}
		}
	case topology.Ring:
	}
	return cost
}
