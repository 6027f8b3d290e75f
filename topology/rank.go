package topology

import (
	"cmp"
	"slices"
)

// ranking gives the places found to the members. The order is depth-first, so that a ring enters each domain once:
// by label path, but with the branch of the members that come before all others (a launcher) first at every level, and
// the branch of the last, shorter segment last.
type ranking struct {
	*ask
	lay *layout
	// segment is the ladder position of the segments' level, -1 for none.
	segment int
	// turn says of a vertex whether it is visited before (-1) or after (1, 2) its siblings.
	turn map[int]int
}

// ranked returns the node of every member, by rank.
func (s *solver) ranked(t trace) []int {
	r := ranking{ask: s.ask, lay: s.lay, segment: s.segment, turn: make(map[int]int)}
	r.mark(t.spots, t.short)
	spots := r.ordered(t.spots)
	nodes := make([]int, len(s.gang.Members))
	for i, m := range s.gang.Members {
		nodes[i] = m.Node
	}
	for i, k := range s.kinds {
		var places []int
		for _, spot := range spots {
			for range spot.counts[i] {
				places = append(places, spot.node)
			}
		}
		ranks := k.ranks
		if i == 0 && len(s.segments.broken) > 0 {
			ranks = r.mended(places)
		}
		for j, rank := range ranks {
			nodes[rank] = places[j]
		}
	}
	return nodes
}

// mark fills turn.
func (r *ranking) mark(spots []spot, short int) {
	if main := r.kinds[0].ranks; len(main) > 0 {
		for i, k := range r.kinds[1:] {
			turn := 0
			if first, last := k.ranks[0], k.ranks[len(k.ranks)-1]; last < main[0] {
				turn = -1
			} else if first > main[len(main)-1] {
				turn = 1
			}
			for _, s := range spots {
				if s.counts[i+1] > 0 {
					r.turnUp(r.lay.leaves[s.node], turn)
				}
			}
		}
	}
	if short >= 0 {
		r.turnUp(short, 2) // whatever else is last there: its ranks are
	}
}

func (r *ranking) turnUp(v, turn int) {
	for ; v >= 0; v = r.lay.vertices[v].parent {
		r.turn[v] = turn
	}
}

// ordered sorts the places as the ring visits them.
func (r *ranking) ordered(spots []spot) []spot {
	if len(r.turn) == 0 {
		slices.SortFunc(spots, func(a, b spot) int { return cmp.Compare(r.lay.leaves[a.node], r.lay.leaves[b.node]) })
		return spots
	}
	paths := make(map[int][]int, len(spots))
	for _, s := range spots {
		var path []int
		for v := r.lay.leaves[s.node]; v >= 0; v = r.lay.vertices[v].parent {
			path = append(path, v)
		}
		slices.Reverse(path)
		paths[s.node] = path
	}
	slices.SortFunc(spots, func(a, b spot) int {
		return slices.CompareFunc(paths[a.node], paths[b.node], func(x, y int) int {
			if x == y {
				return 0
			}
			return cmp.Or(cmp.Compare(r.turn[x], r.turn[y]), cmp.Compare(x, y))
		})
	})
	return spots
}

// mended returns the ranks of the main kind in the order of the places: in each domain of the segments' level first
// those whose segments run there, then whole segments, then the shorter one.
func (r *ranking) mended(places []int) []int {
	var ranks []int
	full, short := r.segments.full, r.segments.short
	for len(places) > 0 {
		home := r.lay.ancestor(places[0], r.segment)
		here := 0
		for here < len(places) && r.lay.ancestor(places[here], r.segment) == home {
			here++
		}
		end := len(ranks) + here
		for _, b := range r.segments.broken {
			if r.lay.ancestor(b.near, r.segment) == home {
				ranks = append(ranks, b.lost...)
			}
		}
		for len(ranks)+r.segments.size <= end && len(full) > 0 {
			ranks, full = append(ranks, full[0]...), full[1:]
		}
		if len(ranks) < end {
			ranks, short = append(ranks, short...), nil
		}
		places = places[here:]
	}
	return ranks
}
