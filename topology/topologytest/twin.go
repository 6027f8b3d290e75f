package topologytest

import (
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Best tries every assignment of members to nodes and returns the cheapest that obeys every rule: of all members or,
// for an elastic gang, of as many first ranks as there is one for.
func (s Scene) Best() (cost int64, nodes []int, ok bool) {
	shortest := len(s.Gang.Members)
	if s.Gang.Min > 0 {
		shortest = s.Gang.Min
	}
	for count := len(s.Gang.Members); count >= shortest; count-- {
		if !s.whole(count) {
			continue
		}
		x := newSearch(s, count)
		x.try(0, 0)
		if x.best != nil {
			return x.cost, x.best, true
		}
	}
	return 0, nil, false
}

// whole reports whether the first members have no segment shorter than the others where that is not allowed.
func (s Scene) whole(count int) bool {
	if s.Gang.Segment.Size == 0 || !s.Gang.Segment.Equal {
		return true
	}
	members := 0
	for _, segment := range s.Segments()[:count] {
		if segment >= 0 {
			members++
		}
	}
	return members%s.Gang.Segment.Size == 0
}

// search walks all assignments, depth first in rank order. Every rule can only get worse by one more member, so each is
// checked as soon as a member is put; what that needs is numbered beforehand.
type search struct {
	communication topology.Communication
	// edge[a][b] is the cost of an edge between nodes a and b.
	edge [][]int64
	// allowed[i] are the nodes that rank i may be on as far as it alone is concerned.
	allowed [][]int
	// demand[i] is the demand of rank i; nothing if it runs already.
	demand  []topology.Capacity
	perNode int
	// required, spread and spares are the rules' groups by node; nil without the rule.
	required, spread, spares []int
	// first[i] is the first rank of rank i's segment, -1 if it belongs to none; segment are the groups by node.
	first   []int
	segment []int
	// counts[i] reports whether rank i counts for the spread: each member, or each that begins a segment.
	counts    []bool
	maxSpread int
	minSpares int
	// capable nodes could be spares.
	capable []bool

	// left, held, spreads and unused are the state: capacity and members by node; what counts for the spread and
	// spares by group.
	left            []topology.Capacity
	held            []int
	spreads, unused []int
	at              []int
	cost            int64
	best            []int
}

func newSearch(s Scene, count int) *search {
	g := s.Gang
	x := &search{
		communication: g.Communication, edge: s.edgeCosts(), perNode: math.MaxInt, at: make([]int, count),
		cost: math.MaxInt64, held: make([]int, len(s.Nodes)),
		spreads: make([]int, len(s.Nodes)), unused: make([]int, len(s.Nodes)),
	}
	if g.PerNode > 0 {
		x.perNode = g.PerNode
	}
	for _, free := range s.Free {
		x.left = append(x.left, slices.Clone(free))
	}
	for _, m := range g.Members[:count] {
		x.allowed = append(x.allowed, s.allowed(m))
		demand := g.Shapes[m.Shape].Demand
		if m.Placed {
			demand = nil
		}
		x.demand = append(x.demand, demand)
	}
	if g.Required != "" {
		x.required, _ = s.Groups(s.Level(g.Required))
	}
	x.addSegments(s, count)
	if g.Spares.Nodes > 0 && !s.anyPlaced() {
		x.addSpares(s)
	}
	return x
}

// edgeCosts is the cost of an edge between each two nodes.
func (s Scene) edgeCosts() [][]int64 {
	costs := make([][]int64, len(s.Nodes))
	for a := range costs {
		costs[a] = make([]int64, len(s.Nodes))
	}
	for l, w := range s.Weights() {
		group, _ := s.Groups(l)
		for a := range costs {
			for b := range costs {
				if group[a] != group[b] {
					costs[a][b] += w
				}
			}
		}
	}
	return costs
}

// allowed lists the nodes that the member may be on as far as it alone is concerned.
func (s Scene) allowed(m topology.Member) []int {
	var nodes []int
	for n := range s.Nodes {
		if s.Usable(n) && (m.Placed && m.Node == n || !m.Placed && !s.barred(m.Shape, n)) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

func (x *search) addSegments(s Scene, count int) {
	segments := s.Segments()
	x.first, x.counts = make([]int, count), make([]bool, count)
	for i, segment := range segments[:count] {
		x.first[i] = -1
		if segment >= 0 {
			x.first[i] = slices.Index(segments, segment)
		}
		x.counts[i] = s.Gang.Segment.Size == 0 || x.first[i] == i
	}
	if s.Gang.Segment.Size > 0 {
		x.segment, _ = s.Groups(s.Level(s.Gang.Segment.Level))
	}
	if x.maxSpread = s.Gang.Spread.Max; x.maxSpread > 0 {
		x.spread, _ = s.Groups(s.Level(s.Gang.Spread.Level))
	}
}

func (x *search) addSpares(s Scene) {
	x.minSpares = s.Gang.Spares.Nodes
	x.spares, _ = s.Groups(s.Level(s.Gang.Spares.Level))
	x.capable = make([]bool, len(s.Nodes))
	for n := range s.Nodes {
		if x.capable[n] = s.spare(n); x.capable[n] {
			x.unused[x.spares[n]]++
		}
	}
}

// spare reports whether the node, while it holds no member, could take one of the most numerous kind.
func (s Scene) spare(node int) bool {
	of, main := s.Kinds()
	return s.Usable(node) && s.Room(s.Gang.Members[slices.Index(of, main)].Shape, node, 1) > 0
}

// try puts the ranks from the given one on; the ranks before cost so much.
func (x *search) try(rank int, cost int64) {
	if rank == len(x.at) {
		x.cost, x.best = cost, slices.Clone(x.at)
		return
	}
	for _, n := range x.allowed[rank] {
		sum, least := x.extend(rank, n, cost)
		if least >= x.cost {
			continue
		}
		x.at[rank] = n
		if x.put(rank, n) {
			x.try(rank+1, sum)
		}
		x.take(rank, n)
	}
}

// extend returns the cost with one more rank at the node, and the least that it can become: the last rank of a ring has
// yet to talk to the first, and no detour is cheaper than the direct edge.
func (x *search) extend(rank, n int, before int64) (cost, least int64) {
	cost = before
	if rank == 0 {
		return cost, cost
	}
	switch x.communication {
	case topology.AllToAll:
		for _, other := range x.at[:rank] {
			cost += x.edge[other][n]
		}
	case topology.Chain:
		cost += x.edge[x.at[rank-1]][n]
	case topology.Ring:
		cost += x.edge[x.at[rank-1]][n]
		least = cost + x.edge[n][x.at[0]]
		if rank == len(x.at)-1 {
			cost = least
		}
		return cost, least
	}
	return cost, cost
}

// put puts the rank on the node and reports whether every rule still holds there.
func (x *search) put(rank, n int) bool {
	ok := true
	for r, d := range x.demand[rank] {
		x.left[n][r] -= d
		ok = ok && (d == 0 || x.left[n][r] >= 0)
	}
	x.held[n]++
	ok = ok && x.held[n] <= x.perNode
	if x.required != nil {
		ok = ok && x.required[n] == x.required[x.at[0]]
	}
	if first := x.first[rank]; first >= 0 {
		ok = ok && x.segment[n] == x.segment[x.at[first]]
	}
	if x.spread != nil && x.counts[rank] {
		x.spreads[x.spread[n]]++
		ok = ok && x.spreads[x.spread[n]] <= x.maxSpread
	}
	if x.spares != nil {
		if x.held[n] == 1 && x.capable[n] {
			x.unused[x.spares[n]]--
		}
		ok = ok && x.unused[x.spares[n]] >= x.minSpares
	}
	return ok
}

// take undoes put.
func (x *search) take(rank, n int) {
	for r, d := range x.demand[rank] {
		x.left[n][r] += d
	}
	x.held[n]--
	if x.spread != nil && x.counts[rank] {
		x.spreads[x.spread[n]]--
	}
	if x.spares != nil && x.held[n] == 0 && x.capable[n] {
		x.unused[x.spares[n]]++
	}
}
