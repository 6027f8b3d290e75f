package topology

import (
	"cmp"
	"slices"
)

// ranking gives the places found to the members. The order is depth-first, so that a ring enters each domain once: by
// label path, but with the branch of the members that precede all others (a launcher) first at every level, and the
// branch of the last, shorter segment last. With two members in each of racks r1 and r2 the ring r1/1 r1/2 r2/1 r2/2
// crosses twice, and r1/1 r2/1 r1/2 r2/2 would four times; if the launcher, rank 0, is on r2/1, the order is r2/1 r2/2
// r1/1 r1/2. The best linear arrangement of a ring on a tree is this one, since a domain that is used must be entered
// once.
type ranking struct {
	*ask
	lay *layout
	// segment is the ladder position of the segments' level, -1 for none.
	segment int
	// turn is the order of a vertex: before (-1) or after (1, 2) its siblings.
	turn map[int]int
}

// ranked returns the node of every member, by rank.
func (s *solver) ranked(t trace) []int {
	r := ranking{ask: s.ask, lay: s.lay, segment: s.segment, turn: make(map[int]int)}
	r.mark(&t)
	for _, places := range t.places {
		r.order(places)
	}
	if main := s.kinds[0].ranks; len(main) == len(s.gang.Members) && len(s.segments.broken) == 0 {
		return t.places[0] // all ranks, ascending
	}
	nodes := make([]int, len(s.gang.Members))
	if len(s.placedOn) > 0 {
		for i, m := range s.gang.Members {
			nodes[i] = m.Node
		}
	}
	for i, k := range s.kinds {
		ranks := k.ranks
		if i == 0 && len(s.segments.broken) > 0 {
			ranks = r.mended(t.places[0])
		}
		for j, rank := range ranks {
			nodes[rank] = t.places[i][j]
		}
	}
	return nodes
}

// mark fills turn.
func (r *ranking) mark(t *trace) {
	if main := r.kinds[0].ranks; len(main) > 0 {
		for i, k := range r.kinds[1:] {
			turn := 0
			if first, last := k.ranks[0], k.ranks[len(k.ranks)-1]; last < main[0] {
				turn = -1
			} else if first > main[len(main)-1] {
				turn = 1
			}
			for _, node := range t.places[i+1] {
				r.turnUp(r.lay.leaves[node], turn)
			}
		}
	}
	if t.short >= 0 {
		r.turnUp(t.short, 2) // whatever else is last there: its ranks are
	}
}

func (r *ranking) turnUp(v, turn int) {
	for ; v >= 0; v = r.lay.vertices[v].parent {
		r.turn[v] = turn
	}
}

// order sorts places that are in depth-first order as the ring visits them.
func (r *ranking) order(places []int) {
	if len(r.turn) == 0 {
		return
	}
	paths := make(map[int][]int, len(places))
	for _, node := range places {
		if paths[node] != nil {
			continue
		}
		var path []int
		for v := r.lay.leaves[node]; v >= 0; v = r.lay.vertices[v].parent {
			path = append(path, v)
		}
		slices.Reverse(path)
		paths[node] = path
	}
	slices.SortFunc(places, func(a, b int) int {
		return slices.CompareFunc(paths[a], paths[b], func(x, y int) int {
			if x == y {
				return 0
			}
			return cmp.Or(cmp.Compare(r.turn[x], r.turn[y]), cmp.Compare(x, y))
		})
	})
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
