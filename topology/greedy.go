package topology

import "github.com/lockstep-project/lockstep/topology/knapsack"

// cheapestFirst combines children that all offer the same: nothing for nothing, or up to some number of units for one
// price. The fewest of them are the largest, so no table is needed. It reports whether the children are such: racks of
// 16, 16, 15 and 9 free nodes at 100 each offer up to 16 for 100, 32 for 200, 47 for 300 and 56 for 400.
func (s *solver) cheapestFirst(kids []int) (knapsack.ParetoFront, bool) {
	if s.exact() || len(kids) == 0 {
		return nil, false
	}
	m, limit := s.mixerOf(s.lay.vertices[kids[0]].parent)
	fee, ok := int64(0), m.Layers().Count() == 1
	if ok {
		fee, ok = s.uniformPrice(kids)
	}
	if !ok {
		return nil, false
	}
	points := knapsack.Line{{}}
	total := 0
	for i, kid := range kids {
		if total >= limit {
			break
		}
		total = min(total+int(s.units[kid]), limit)
		p := knapsack.Point{N: int32(total), Cost: fee * int64(i+1)}
		if fee == 0 {
			points = points[:0]
		}
		points = append(points, p)
	}
	return knapsack.ParetoFront{points}, true
}

// uniformPrice returns the cost of the use of any of the children, whatever is in it.
func (s *solver) uniformPrice(kids []int) (int64, bool) {
	fee := int64(-1)
	for _, kid := range kids {
		if s.count(s.placed, kid) > 0 {
			return 0, false
		}
		points := s.priced(kid)[0]
		f := int64(0)
		switch {
		case len(points) == 2 && points[0] == knapsack.Point{}:
			f = points[1].Cost
		case len(points) != 1 || points[0].Cost != 0:
			return 0, false
		}
		if fee >= 0 && f != fee {
			return 0, false
		}
		fee = f
	}
	return fee, true
}
