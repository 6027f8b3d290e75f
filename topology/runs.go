package topology

import (
	"math"
	"slices"
)

// run is consecutive ranks in one group of a level (layouts.groups), counted by members; node is the first one's. Costs
// are counted by runs: two ranks on each of two nodes are two runs of nodes, and one of their rack.
type run struct{ node, members int32 }

// runsOf appends the runs of a level to into.
func runsOf(into []run, nodes []int, group []int32) []run {
	before := int32(math.MinInt32)
	for _, n := range nodes {
		if g := group[n]; g != before {
			into, before = append(into, run{int32(n), 1}), g
			continue
		}
		into[len(into)-1].members++
	}
	return into
}

// merged appends the runs of a level to into: neighbors of one group are one run. Into may be the memory of the runs
// themselves.
func merged(into, runs []run, group []int32) []run {
	before := int32(math.MinInt32)
	for _, r := range runs {
		if g := group[r.node]; g != before {
			into, before = append(into, r), g
			continue
		}
		into[len(into)-1].members += r.members
	}
	return into
}

// distinct returns the number of different groups, which are less than numbers.
func distinct(runs []run, group []int32, numbers int) int {
	const few, dense = 16, 8 // up to few are compared with each other; a bit per number pays from one run in dense on
	n := 0
	switch {
	case ascend(runs, group):
		n = len(runs)
	case len(runs) <= few:
		for i, r := range runs {
			same := func(other run) bool { return group[other.node] == group[r.node] }
			if !slices.ContainsFunc(runs[:i], same) {
				n++
			}
		}
	case len(runs) < numbers/dense:
		used := make(map[int32]struct{})
		for _, r := range runs {
			used[group[r.node]] = struct{}{}
		}
		n = len(used)
	default:
		used := make([]bool, numbers)
		for _, r := range runs {
			if g := group[r.node]; !used[g] {
				used[g], n = true, n+1
			}
		}
	}
	return n
}

// ascend reports whether each group's number is more than the one before, as in the layout's order.
func ascend(runs []run, group []int32) bool {
	before := int32(math.MinInt32)
	for _, r := range runs {
		g := group[r.node]
		if g <= before {
			return false
		}
		before = g
	}
	return true
}

// edges counts the edges of the ranks' traffic that join different groups.
func (c Communication) edges(runs []run, group []int32) int64 {
	switch {
	case len(runs) == 0:
		return 0
	case c == AllToAll:
		return pairs(runs, group)
	case c == Ring && group[runs[0].node] != group[runs[len(runs)-1].node]:
		return int64(len(runs))
	}
	return int64(len(runs) - 1)
}

// all counts the edges of so many members: those that join different groups if no two share one.
func (c Communication) all(members int) int64 {
	n := int64(members)
	switch {
	case c == AllToAll:
		return n * (n - 1) / 2
	case c == Ring && n > 1:
		return n
	}
	return n - 1
}

// pairs counts the pairs in different groups: all pairs less those that share one.
func pairs(runs []run, group []int32) int64 {
	members, n := make(map[int32]int64), int64(0)
	for _, r := range runs {
		members[group[r.node]] += int64(r.members)
		n += int64(r.members)
	}
	crossing := n * n
	for _, s := range members {
		crossing -= s * s
	}
	return crossing / 2
}
