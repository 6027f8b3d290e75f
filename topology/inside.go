package topology

import "github.com/lockstep-project/lockstep/topology/knapsack"

// inside returns the front of the vertex without the cost of using the vertex itself.
func (s *solver) inside(v int) knapsack.ParetoFront {
	id := s.classes.find(v)
	if f := s.classes.all[id].front; f != nil {
		return f
	}
	kids := s.classes.kidsOf(v)
	f, rest := s.combined(v, kids)
	f = s.allowed(v, f)
	s.classes.all[id].front, s.classes.all[id].rest = f, rest
	s.classes.hold(f)
	s.classes.hold(rest...)
	return f
}

// combined returns the front of all children together, before the vertex's own rules.
func (s *solver) combined(v int, kids []int) (knapsack.ParetoFront, []knapsack.ParetoFront) {
	u := s.lay.vertices[v]
	if u.level == len(s.lay.ladder) {
		return s.leaf(s.lay.nodes[u.first]), nil
	}
	if f, ok := s.cheapestFirst(kids); ok {
		return f, nil
	}
	m, limit := s.mixerOf(v)
	rests := m.Rests(s.pricedAll(kids), limit)
	return rests[0], rests
}

// mixerOf returns the mixer that combines the children of the vertex, and the limit of units.
func (s *solver) mixerOf(v int) (*knapsack.Mixer, int) {
	if s.segment >= 0 && s.lay.vertices[v].level < s.segment {
		return s.mixMany, len(s.segments.full)
	}
	return s.mixFew, len(s.kinds[0].ranks)
}

// leaf is the front of a node.
func (s *solver) leaf(node int) knapsack.ParetoFront {
	f := make(knapsack.ParetoFront, len(s.room))
	for e, room := range s.room {
		n := min(room[node], int32(len(s.kinds[0].ranks)))
		switch {
		case n < 0:
		case s.exact():
			for i := range n + 1 {
				f[e] = append(f[e], knapsack.Point{N: i})
			}
		default:
			f[e] = knapsack.Line{{N: n}}
		}
	}
	return f
}

// priced returns the front of the vertex with the cost of using the vertex.
func (s *solver) priced(v int) knapsack.ParetoFront {
	in, w := s.inside(v), s.weight(v)
	c := &s.classes.all[s.classes.find(v)]
	if c.priced != nil && c.weight == w {
		return c.priced
	}
	out := make(knapsack.ParetoFront, len(in))
	c.priced, c.weight = out, w
	for e, points := range in {
		if len(points) == 0 {
			continue
		}
		if s.exact() {
			out[e] = s.pairwise(v, e, points, w)
			continue
		}
		free := w
		if s.single && s.lay.vertices[v].level == len(s.lay.ladder) {
			free -= s.weights[len(s.weights)-1] // counted once for all nodes, see settled
		}
		out[e] = s.charged(v, e, points, w, free)
	}
	s.classes.hold(out)
	return out
}

func (s *solver) pricedAll(kids []int) []knapsack.ParetoFront {
	fronts := make([]knapsack.ParetoFront, len(kids))
	for i, kid := range kids {
		fronts[i] = s.priced(kid)
	}
	return fronts
}

// charged adds the weight of using the vertex to every point but that of no member at all; withMain is the weight if
// members of the main kind are there.
func (s *solver) charged(v, layer int, points knapsack.Line, w, withMain int64) knapsack.Line {
	out := make(knapsack.Line, 0, len(points)+1)
	empty := w
	if s.members(v, 0, layer) == 0 {
		empty = 0
	}
	if points[0].N > 0 && empty != withMain {
		out = append(out, knapsack.Point{Cost: points[0].Cost + empty})
	}
	for _, p := range points {
		if p.N == 0 {
			p.Cost += empty
		} else {
			p.Cost += withMain
		}
		out = append(out, p)
	}
	return out
}

// pairwise adds the vertex's cost for an all-to-all: the pairs that it separates.
func (s *solver) pairwise(v, layer int, points knapsack.Line, w int64) knapsack.Line {
	all := int64(len(s.gang.Members))
	out := make(knapsack.Line, len(points))
	for i, p := range points {
		inside := int64(s.members(v, int(p.N), layer))
		out[i] = knapsack.Point{N: p.N, Cost: p.Cost + w*inside*(all-inside)}
	}
	return out
}

// allowed applies the rules of the vertex: caps, and at the segments' level units become segments.
func (s *solver) allowed(v int, f knapsack.ParetoFront) knapsack.ParetoFront {
	level := s.lay.vertices[v].level
	f = s.capped(v, f, s.limit)
	if level == s.segment {
		f = s.capped(v, s.segmented(v, f), s.limitSegments)
	}
	return f
}

func (s *solver) capped(v int, f knapsack.ParetoFront, limit func(v, layer int) int) knapsack.ParetoFront {
	level := s.lay.vertices[v].level
	if level != s.spread && (level != s.spares || s.fit == nil) {
		return f
	}
	out := make(knapsack.ParetoFront, len(f))
	for e, points := range f {
		n := limit(v, e)
		if e == 0 {
			n = max(n, 0) // nothing is always allowed
		}
		switch {
		case n < 0:
		case s.exact():
			out[e] = points[:points.From(n+1)]
		default:
			out[e] = points.Cap(n)
		}
	}
	return out
}

// segmented turns members into segments, with and without the short one; lost members of running segments are placed
// first. A rack that offers up to 18 members for 100 offers two segments of 8 for 100, and two nodes stay free; if a
// segment that runs there has lost 3 members, 15 are left: one.
func (s *solver) segmented(v int, f knapsack.ParetoFront) knapsack.ParetoFront {
	out := make(knapsack.ParetoFront, s.many.Count())
	for layer := range out {
		owed := s.count(s.owed, v)
		if layer >= s.few.Count() {
			owed += len(s.segments.short)
		}
		var points knapsack.Line
		for _, p := range f[layer%s.few.Count()] {
			n := int(p.N) - owed
			if n < 0 || s.exact() && n%s.segments.size != 0 {
				continue
			}
			n = min(n/s.segments.size, len(s.segments.full))
			if last := len(points) - 1; last < 0 || int(points[last].N) < n {
				points = append(points, knapsack.Point{N: int32(n), Cost: p.Cost})
			}
		}
		out[layer] = points
	}
	return out
}
