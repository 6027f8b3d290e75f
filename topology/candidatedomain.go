package topology

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// tally counts members of one kind below a vertex: in units, which are whole segments from the segments' level outward,
// at most so many in a domain of the spread's level. For some rules that is exact (see ask.countable); for all others
// no gang fits where a tally is below its target.
type tally struct {
	demand          Capacity
	segment, spread int
	size, most      int64
	// target is the number of units of the gang.
	target int64
}

// candidateDomain is a part of the fleet that is to hold the gang, and the running gangs that hold something there.
type candidateDomain struct {
	*victimSearch
	v     int
	nodes []int
	// victims are in the order in which they are decided about.
	victims []victim
	gauges  []gauge
	// low is the state when only the chosen victims have left, high that when all but those that stay have.
	low, high state
	// least is a lower bound of the cost, cheapest[i] the least cost of any of victims[i:].
	least    int64
	cheapest []int64
	// path are the victims chosen, cost and held theirs; costs[i] is the cost of path[:i].
	path  []int
	costs []int64
	cost  int64
	held  int
	best  choice
	// winner is set if best is the best of all candidate domains so far.
	winner bool
	// alone is the question put to these nodes only; at maps them to its ledger.
	alone *ask
	at    []int
}

type victim struct {
	gang   int
	cost   int64
	held   int
	grants []grant
	// worth[kind] is an upper bound, in members, of the kind's gain by the departure, whichever other victims leave.
	worth []int64
}

// grant is the room that a departure frees on a node of the candidate domain.
type grant struct {
	node   int
	demand Capacity
}

// state is the room left on the nodes of a candidate domain, and the number of each kind that each vertex holds.
type state struct {
	free   []Capacity
	counts []count
}

// count is a tally of the vertices from base on, updated at each change. raw is the sum of the children, or a node's
// number.
type count struct {
	*tally
	base     int
	vertices []vertex
	raw      []int64
}

// units returns the number that the vertex holds under the rules.
func (c *count) units(x int) int64 {
	n, level := c.raw[x], c.vertices[x].level
	if level == c.segment {
		n /= c.size
	}
	if level == c.spread {
		n = min(n, c.most)
	}
	return n
}

// set changes the number of members that a node holds.
func (c *count) set(x int, room int64) {
	for delta := room - c.raw[x]; delta != 0; {
		before := c.units(x)
		c.raw[x] += delta
		delta = c.units(x) - before
		if x == 0 {
			return
		}
		x = c.vertices[x].parent - c.base
	}
}

// factor returns the number of members of a unit of the vertex.
func (c *count) factor(x int) int64 {
	if level := c.vertices[x].level; level <= c.segment {
		return c.size
	}
	return 1
}

// lacking returns the number of members that the candidate domain still lacks.
func (c *count) lacking() int64 { return (c.target - c.units(0)) * c.factor(0) }

// newCandidateDomain returns nil if evictions do not make room there. seen has room for all running gangs, and is zero.
func newCandidateDomain(h *victimSearch, v int, seen []int) *candidateDomain {
	u := h.lay.vertices[v]
	g := &candidateDomain{victimSearch: h, v: v, nodes: h.lay.nodes[u.first:u.last]}
	for i, node := range g.nodes {
		for _, held := range h.holds[node] {
			if !h.usable(node) {
				break
			}
			if seen[held.gang] == 0 {
				r := h.running[held.gang]
				g.victims = append(
					g.victims,
					victim{gang: held.gang, cost: min(r.Cost, knapsack.Never-1), held: len(r.Holds)},
				)
				seen[held.gang] = len(g.victims)
			}
			w := &g.victims[seen[held.gang]-1]
			w.grants = append(w.grants, grant{i, held.demand})
		}
	}
	for _, w := range g.victims {
		seen[w.gang] = 0
	}
	if len(g.victims) == 0 {
		return nil
	}
	g.high = g.count(1)
	if !g.high.enough() {
		return nil
	}
	g.low = g.count(0)
	g.appraise()
	g.least = g.lowerBound(0)
	if g.least == knapsack.Never {
		return nil
	}
	return g
}

func (h *victimSearch) usable(node int) bool {
	return slices.ContainsFunc(h.limits, func(limits []int32) bool { return limits[node] > 0 })
}

// count counts a state: that in which all victims have left (times 1) or are there (times 0).
func (g *candidateDomain) count(times int64) state {
	s := state{free: make([]Capacity, len(g.nodes)), counts: make([]count, len(g.tallies))}
	for i, node := range g.nodes {
		s.free[i] = g.ledger.Free[node]
	}
	owned := make([]bool, len(g.nodes))
	for _, w := range g.victims {
		for _, at := range w.grants {
			if !owned[at.node] {
				owned[at.node] = true
				s.free[at.node] = append(make(Capacity, 0, g.resources), s.free[at.node]...)[:g.resources]
			}
			for r, d := range at.demand {
				s.free[at.node][r] += d * times
			}
		}
	}
	vertices := g.lay.vertices[g.v:g.lay.vertices[g.v].end]
	for k := range s.counts {
		c := count{tally: &g.tallies[k], base: g.v, vertices: vertices, raw: make([]int64, len(vertices))}
		for i, node := range g.nodes {
			c.raw[g.lay.leaves[node]-g.v] = g.room(k, i, s.free[i])
		}
		for x, u := range slices.Backward(vertices[1:]) {
			c.raw[u.parent-g.v] += c.units(x + 1)
		}
		s.counts[k] = c
	}
	return s
}

func (g *candidateDomain) room(kind, node int, free Capacity) int64 {
	limit := g.limits[kind][g.nodes[node]]
	if limit == 0 {
		return 0
	}
	return int64(free.times(g.tallies[kind].demand, int(limit)))
}

// shift lets a victim leave (1) or return (-1).
func (g *candidateDomain) shift(s *state, i int, times int64) {
	for _, at := range g.victims[i].grants {
		for r, d := range at.demand {
			s.free[at.node][r] += d * times
		}
		for k := range s.counts {
			s.counts[k].set(g.lay.leaves[g.nodes[at.node]]-g.v, g.room(k, at.node, s.free[at.node]))
		}
	}
}

// enough reports whether the counts leave nothing lacking.
func (s *state) enough() bool {
	return !slices.ContainsFunc(s.counts, func(c count) bool { return c.lacking() > 0 })
}

// fits reports whether the gang fits the candidate domain in a state.
func (g *candidateDomain) fits(s *state) bool {
	if !s.enough() {
		return false
	}
	if g.countable() {
		return true
	}
	if g.shortOnly() {
		g.effort.nodes -= len(g.nodes) / 16
		return s.fitsShort(g.lay.ruled(g.rules.segment), g.segments)
	}
	g.effort.nodes -= len(g.nodes)
	ok, err := g.asked(s).fits()
	return ok && err == nil
}

// shortOnly reports whether only the last, shorter segment keeps the members from being countable, and the candidate
// domains hold whole domains of the segments.
func (h *victimSearch) shortOnly() bool {
	a := *h.ask
	a.segments.short = nil
	return len(h.segments.short) > 0 && a.countable() && a.rules.spread < 0 &&
		h.lay.ruled(h.rules.segment) >= h.lay.position(h.level())
}

// fitsShort reports whether all segments fit: where there is room for one more full one, or in the rest that full ones
// leave.
func (s *state) fitsShort(level int, segments segments) bool {
	c, full, left := &s.counts[0], int64(0), false
	size, short := int64(segments.size), int64(len(segments.short))
	for x, u := range c.vertices {
		if u.level == level {
			full += c.raw[x] / size
			left = left || c.raw[x]%size >= short
		}
	}
	wanted := int64(len(segments.full))
	return full > wanted || full == wanted && left
}

// certain reports whether a set that makes room still does so when more leave, which pruning needs. Packings need not,
// nor do spares of nodes that hold several members (the smallest ones are spared).
func (g *candidateDomain) certain() bool {
	if g.rules.spares < 0 || !g.exact() {
		return g.exact()
	}
	return len(g.tallies) == 1 && !slices.ContainsFunc(g.nodes, func(node int) bool {
		return g.high.counts[0].raw[g.lay.leaves[node]-g.v] > 1
	})
}

// asked returns the question for the candidate domain alone in a state.
func (g *candidateDomain) asked(s *state) *ask {
	if g.alone == nil {
		g.isolate()
	}
	for i, at := range g.at {
		g.alone.ledger.Free[at] = s.free[i]
	}
	return g.alone
}

// isolate makes alone. The whole fleet is evaluated unchanged, a domain as a small fleet.
func (g *candidateDomain) isolate() {
	if g.v == 0 {
		whole := *g.ask
		whole.ledger.Free = slices.Clone(g.ledger.Free)
		g.alone, g.at = &whole, g.nodes
		return
	}
	t := g.ledger.Tree
	order := make([]int, len(g.nodes))
	for i := range order {
		order[i] = i
	}
	named := func(i int) entry { return t.roster.entry(g.nodes[i]) }
	slices.SortFunc(order, func(a, b int) int { return comparePaths(named(a), named(b)) })
	g.at = make([]int, len(order))
	small := &Tree{levels: t.levels, roster: roster{len: len(order)}}
	entries := make([]entry, len(order))
	for at, i := range order {
		g.at[i], entries[at] = at, named(i)
	}
	small.root = grow(entries, nil, len(t.levels))
	for page := range slices.Chunk(entries, pageSize) {
		small.roster.pages = append(small.roster.pages, page)
	}
	g.alone = newAsk(Ledger{Tree: small, Free: make([]Capacity, len(order))}, g.moved(), g.rules)
}

// moved is the gang with nodes numbered as those of alone.
func (g *candidateDomain) moved() Gang {
	gang := g.gang
	gang.Shapes, gang.Members = slices.Clone(gang.Shapes), slices.Clone(gang.Members)
	for i, s := range gang.Shapes {
		if s.Barred == nil {
			continue
		}
		gang.Shapes[i].Barred = make([]string, len(g.at))
		for at, moved := range g.at {
			gang.Shapes[i].Barred[moved] = s.Barred[g.nodes[at]]
		}
	}
	for i, m := range gang.Members {
		if m.Placed {
			gang.Members[i].Node = g.at[slices.Index(g.nodes, m.Node)]
		}
	}
	return gang
}
