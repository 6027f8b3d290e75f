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
	// barred says which nodes take no member, nil if all may.
	barred []bool
	// room is by node, units (what is below) by vertex. low is the smallest room of a node below that holds the whole gang, 0 if
	// none does.
	room, units, low []int32
	// cost is that of the gang in a domain, unknownCost if nobody asked since something changed below.
	cost []int64
	// with counts the nodes by their room where that is little, large those of which it is not; several how many hold more than
	// one member.
	with           [little]int32
	large, several int
	// broken is set if sums might not be exact.
	broken bool
	// read is how many changes of the book are in it.
	read int
	// domains are the vertices but nodes by level, the root's first; spans those that stand for each level (see eachSpan).
	domains, spans [][]int32
}

const unknownCost = -1

// little is the room from which on nodes are not counted by it.
const little = 128

// keyRoom is as long as most keys are: a buffer for them costs nothing.
const keyRoom = 64

// appendCensusKey appends what tells questions apart that count differently.
func appendCensusKey(key []byte, a *ask) []byte {
	key = binary.AppendVarint(key, int64(len(a.gang.Members)))
	key = binary.AppendVarint(key, int64(a.rules.required))
	key = binary.AppendVarint(key, int64(a.gang.PerNode))
	key = binary.AppendVarint(key, int64(a.gang.Communication))
	for level := range len(a.ledger.Tree.levels) + 1 {
		key = binary.AppendVarint(key, a.weight(level))
	}
	key = binary.AppendVarint(key, int64(len(a.kinds[0].shape.Demand)))
	for _, d := range a.kinds[0].shape.Demand {
		key = binary.AppendVarint(key, d)
	}
	return appendBarred(key, a.kinds[0].shape.Barred)
}

// appendBarred appends a bit for each node, set if it is barred; nothing if none is.
func appendBarred(key []byte, rules []string) []byte {
	const bits = 8
	from := len(key)
	some := false
	for nodes := range slices.Chunk(rules, bits) {
		var byBit byte
		for bit, rule := range nodes {
			if rule != "" {
				byBit |= 1 << bit
			}
		}
		some = some || byBit != 0
		key = append(key, byBit)
	}
	if !some {
		return key[:from]
	}
	return key
}

// plain reports whether a census says all about the ask: its members are of one kind, none of them runs, and there are no rules
// but a required level, a limit per node, and nodes that are barred.
func (a *ask) plain() bool {
	return len(a.kinds) == 1 && len(a.placedOn) == 0 &&
		a.rules.segment < 0 && a.rules.spread < 0 && a.rules.spares < 0 &&
		!a.kinds[0].free() && !a.ledger.Tree.layout().crossed()
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
	for node, rule := range a.kinds[0].shape.Barred {
		if rule != "" {
			if g.barred == nil {
				g.barred = make([]bool, len(g.room))
			}
			g.barred[node] = true
		}
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

// cloneInto returns a census for other capacities, before they are counted, in the memory of one that nobody needs, nil for none.
func (c *census) cloneInto(old *census, free []Capacity) *census {
	if old == nil {
		old = &census{}
	}
	room, units, low, cost := old.room[:0], old.units[:0], old.low[:0], old.cost[:0]
	*old = *c
	old.free = free
	old.room, old.units, old.low = append(room, c.room...), append(units, c.units...), append(low, c.low...)
	old.cost = append(cost, c.cost...)
	return old
}

// roomOn is how many members fit on the node.
func (c *census) roomOn(node int) int32 {
	if c.lay.leaves[node] < 0 || c.barred != nil && c.barred[node] {
		return 0
	}
	if c.required >= 0 && c.required < len(c.lay.ladder) && c.lay.tree.roster.entry(node).path[c.required] == "" {
		return 0
	}
	room := c.free[node].times(c.demand, c.limit)
	c.broken = c.broken || room > most/(len(c.room)+1)
	return int32(room)
}

// countAll counts every node anew.
func (c *census) countAll() {
	clear(c.units)
	clear(c.low)
	c.with, c.large, c.several = [little]int32{}, 0, 0
	for v := range c.cost {
		c.cost[v] = unknownCost
	}
	for node := range c.room {
		n := c.roomOn(node)
		c.room[node] = n
		c.tally(n, 1)
	}
	if c.broken {
		return
	}
	for v, u := range slices.Backward(c.lay.vertices) {
		if u.level == len(c.lay.ladder) {
			c.units[v] = c.room[c.lay.nodes[u.first]]
			c.low[v] = c.whole(c.units[v])
		}
		if u.parent >= 0 {
			c.units[u.parent] += c.units[v]
			c.low[u.parent] = lower(c.low[u.parent], c.low[v])
		}
	}
}

// tally counts one node more or less of a room.
func (c *census) tally(room int32, by int) {
	if room < little {
		c.with[room] += int32(by)
	} else {
		c.large += by
	}
	if room > 1 {
		c.several += by
	}
}

// whole is the room of a node if it holds the whole gang, else 0.
func (c *census) whole(room int32) int32 {
	if int(room) >= c.target {
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
func (c *census) count(node int) {
	before, now := c.room[node], c.roomOn(node)
	if before == now || c.broken {
		return
	}
	wholes := c.several == 0
	c.room[node] = now
	c.tally(before, -1)
	c.tally(now, 1)
	if wholes != (c.several == 0) { // costs are counted in another way
		for v := range c.cost {
			c.cost[v] = unknownCost
		}
	}
	leaf := c.lay.leaves[node]
	was, is := c.low[leaf], c.whole(now)
	c.low[leaf] = is
	c.units[leaf] = now
	for v := c.lay.vertices[leaf].parent; v >= 0; v = c.lay.vertices[v].parent {
		c.units[v] += now - before
		c.cost[v] = unknownCost
		if was != is {
			was, is = c.relow(v, was, is)
		}
	}
}

// relow updates low of a vertex of which a child had one and has another one. It returns the vertex's before and after.
func (c *census) relow(v int, was, is int32) (before, now int32) {
	before = c.low[v]
	if now = lower(before, is); before == was && was != 0 && (is == 0 || is > was) {
		now = 0
		for kid := v + 1; kid < c.lay.vertices[v].end; kid = c.lay.vertices[kid].end {
			now = lower(now, c.low[kid])
		}
	}
	c.low[v] = now
	return before, now
}

// fits reports whether some domain of the required level holds the gang.
func (c *census) fits() bool {
	switch {
	case c.required < 0:
		return int(c.units[0]) >= c.target
	case c.required >= len(c.lay.ladder):
		return c.low[0] > 0
	}
	return slices.ContainsFunc(c.domains[c.required+1], func(v int32) bool { return int(c.units[v]) >= c.target })
}
