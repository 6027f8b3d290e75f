package topology

import (
	"encoding/binary"
	"slices"
)

// census is what the nodes and domains of one layout hold of one kind of members, and what a gang of so many of them costs in
// each domain.
type census struct {
	lay  *layout
	free []Capacity
	// demand is what a member takes, limit how many go onto a node at most, required the level that a node has to have a label
	// of (-1 for none), target how many members the gang has.
	demand                  Capacity
	limit, required, target int
	// room is by node, units (what is below) by vertex. low is the smallest room of a node below that holds the whole gang, 0 if
	// none does.
	room, units, low []int32
	// cost is that of the gang in a domain, unknownCost if nobody asked since something changed below.
	cost []int64
	// several is how many nodes hold more than one member.
	several int
	// broken is set if sums might not be exact.
	broken bool
	// read is how many changes of the book are in it.
	read int
	// domains are the vertices but nodes by level, the root's first; spans those that stand for each level (see eachSpan).
	domains, spans [][]int32
}

const unknownCost = -1

// censusKey tells questions apart that count differently.
func censusKey(a *ask, weights []int64) string {
	key := make([]byte, 0, 64)
	key = binary.AppendVarint(key, int64(len(a.gang.Members)))
	key = binary.AppendVarint(key, int64(a.rules.required))
	key = binary.AppendVarint(key, int64(a.gang.PerNode))
	key = binary.AppendVarint(key, int64(a.gang.Communication))
	for _, w := range weights {
		key = binary.AppendVarint(key, w)
	}
	for _, d := range a.kinds[0].shape.Demand {
		key = binary.AppendVarint(key, d)
	}
	return string(key)
}

// plain reports whether a census says all about the ask: its members are of one kind, none of them runs, and there are no rules
// but a required level and a limit per node.
func (a *ask) plain() bool {
	return len(a.kinds) == 1 && len(a.placedOn) == 0 && a.rules.segment < 0 && a.rules.spread < 0 && a.rules.spares < 0 &&
		a.kinds[0].shape.Barred == nil && !a.kinds[0].free() && !a.ledger.Tree.layout().crossed()
}

func newCensus(a *ask, free []Capacity) *census {
	lay := a.ledger.Tree.layout().first()
	vertices := len(lay.vertices)
	g := &census{
		lay: lay, free: free, demand: slices.Clone(a.kinds[0].shape.Demand), limit: most,
		required: a.rules.required, target: len(a.gang.Members),
		room: make([]int32, len(lay.leaves)), units: make([]int32, vertices), low: make([]int32, vertices),
		cost: make([]int64, vertices),
	}
	if a.gang.PerNode > 0 {
		g.limit = a.gang.PerNode
	}
	g.domains, g.spans = make([][]int32, len(lay.ladder)+1), make([][]int32, len(lay.ladder))
	for v, u := range lay.vertices {
		if u.level < len(lay.ladder) {
			g.domains[u.level+1] = append(g.domains[u.level+1], int32(v))
		}
	}
	lay.eachSpan(func(v, level int, _ []int) { g.spans[level] = append(g.spans[level], int32(v)) })
	g.countAll()
	return g
}

// clone returns a census for other capacities, before they are counted.
func (g *census) clone(free []Capacity) *census {
	c := *g
	c.free = free
	c.room, c.units, c.low = slices.Clone(g.room), slices.Clone(g.units), slices.Clone(g.low)
	c.cost = slices.Clone(g.cost)
	return &c
}

// roomOn is how many members fit on the node.
func (g *census) roomOn(node int) int32 {
	if g.lay.leaves[node] < 0 {
		return 0
	}
	if g.required >= 0 && g.required < len(g.lay.ladder) && g.lay.tree.roster.entry(node).path[g.required] == "" {
		return 0
	}
	room := g.free[node].times(g.demand, g.limit)
	g.broken = g.broken || room > most/(len(g.room)+1)
	return int32(room)
}

// countAll counts every node anew.
func (g *census) countAll() {
	clear(g.units)
	clear(g.low)
	g.several = 0
	for v := range g.cost {
		g.cost[v] = unknownCost
	}
	for node := range g.room {
		n := g.roomOn(node)
		g.room[node] = n
		if n > 1 {
			g.several++
		}
	}
	if g.broken {
		return
	}
	for v, u := range slices.Backward(g.lay.vertices) {
		if u.level == len(g.lay.ladder) {
			g.units[v] = g.room[g.lay.nodes[u.first]]
			g.low[v] = g.whole(g.units[v])
		}
		if u.parent >= 0 {
			g.units[u.parent] += g.units[v]
			g.low[u.parent] = lower(g.low[u.parent], g.low[v])
		}
	}
}

// whole is the room of a node if it holds the whole gang, else 0.
func (g *census) whole(room int32) int32 {
	if int(room) >= g.target {
		return room
	}
	return 0
}

// lower is the smaller of two rooms; 0 is none.
func lower(a, b int32) int32 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// count counts a node anew.
func (g *census) count(node int) {
	before, now := g.room[node], g.roomOn(node)
	if before == now || g.broken {
		return
	}
	wholes := g.several == 0
	g.room[node] = now
	if before > 1 {
		g.several--
	}
	if now > 1 {
		g.several++
	}
	if wholes != (g.several == 0) { // costs are counted in another way
		for v := range g.cost {
			g.cost[v] = unknownCost
		}
	}
	leaf := g.lay.leaves[node]
	was, is := g.low[leaf], g.whole(now)
	g.low[leaf] = is
	g.units[leaf] = now
	for v := g.lay.vertices[leaf].parent; v >= 0; v = g.lay.vertices[v].parent {
		g.units[v] += now - before
		g.cost[v] = unknownCost
		if was != is {
			was, is = g.relow(v, was, is)
		}
	}
}

// relow updates low of a vertex of which a child had one and has another one. It returns the vertex's before and after.
func (g *census) relow(v int, was, is int32) (before, now int32) {
	before = g.low[v]
	if now = lower(before, is); before == was && was != 0 && (is == 0 || is > was) {
		now = 0
		for kid := v + 1; kid < g.lay.vertices[v].end; kid = g.lay.vertices[kid].end {
			now = lower(now, g.low[kid])
		}
	}
	g.low[v] = now
	return before, now
}

// fits reports whether some domain of the required level holds the gang.
func (g *census) fits() bool {
	switch {
	case g.required < 0:
		return int(g.units[0]) >= g.target
	case g.required >= len(g.lay.ladder):
		return g.low[0] > 0
	}
	return slices.ContainsFunc(g.domains[g.required+1], func(v int32) bool { return int(g.units[v]) >= g.target })
}
