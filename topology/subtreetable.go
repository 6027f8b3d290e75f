package topology

import (
	"encoding/binary"
	"slices"
)

// subtreeTable counts, for one kind of members, how many the nodes and domains of one layout hold, and the cost of a gang of so
// many in each domain. Racks r1 and r2 with 2 and 3 free nodes of one block, for a gang of 3: units are 2, 3 and 5, so r2 and the block hold it. A node
// of r1 is taken: units of the node, of r1 (1) and of the block (4) change, and costs of r1 and the block are unknown again; r2's still hold.
type subtreeTable struct {
	lay  *layout
	free []Capacity
	// demand is that of a member, limit the most members on a node, required the level that a node has to have a label of (-1
	// for none), target the number of members of the gang.
	demand                  Capacity
	limit, required, target int
	// barred marks the nodes that take no member, nil if all may.
	barred []bool
	// room is by node, units (the sum below) by vertex. low is the smallest room of a node below that holds the whole
	// gang, 0 if none does.
	room, units, low []int32
	// cost is that of the gang in a domain, unknownCost if it was not computed since the last change below.
	cost []int64
	// with counts the nodes by their room where that is little, large the others; several is the number of those that hold more
	// than one member.
	with           [little]int32
	large, several int
	// broken is set if sums might not be exact.
	broken bool
	// read is the number of changes of the book that are in it.
	read int
	// classes and their fronts outlast a question; nil if there are none.
	classes *classes
	// domains are the vertices but nodes by level, the root's first; spans those that stand for each level (see eachSpan).
	domains, spans [][]int32
}

const unknownCost = -1

// little is the room from which on nodes are not counted by it.
const little = 128

// keyRoom is as long as most keys are: a buffer for them costs nothing.
const keyRoom = 64

// appendTableKey appends the parts of a question that change the counts.
func appendTableKey(key []byte, a *ask) []byte {
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

// plain reports whether a subtree table covers all rules of the ask: its members are of one kind, none of them runs,
// and there are no rules but a required level, a limit per node, and nodes that are barred.
func (a *ask) plain() bool {
	return len(a.kinds) == 1 && len(a.placedOn) == 0 && !a.gang.boxed() &&
		a.rules.segment < 0 && a.rules.spread < 0 && a.rules.spares < 0 &&
		!a.kinds[0].free() && !a.ledger.Tree.layout().crossed()
}

func newSubtreeTable(a *ask, free []Capacity) *subtreeTable {
	lay := a.ledger.Tree.layout().first()
	vertices := len(lay.vertices)
	g := &subtreeTable{
		lay: lay, free: free, demand: slices.Clone(a.kinds[0].shape.Demand), limit: unlimited,
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

// cloneInto returns a subtree table for other capacities, before they are counted, in the memory of an unused one, nil for none.
func (c *subtreeTable) cloneInto(old *subtreeTable, free []Capacity) *subtreeTable {
	if old == nil {
		old = &subtreeTable{}
	}
	room, units, low, cost := old.room[:0], old.units[:0], old.low[:0], old.cost[:0]
	*old = *c
	old.classes = nil
	old.free = free
	old.room, old.units, old.low = append(room, c.room...), append(units, c.units...), append(low, c.low...)
	old.cost = append(cost, c.cost...)
	return old
}

// roomOn returns the number of members that fit on the node.
func (c *subtreeTable) roomOn(node int) int32 {
	if c.lay.leaves[node] < 0 || c.barred != nil && c.barred[node] {
		return 0
	}
	if c.required >= 0 && c.required < len(c.lay.ladder) && c.lay.tree.roster.entry(node).path[c.required] == "" {
		return 0
	}
	room := c.free[node].times(c.demand, c.limit)
	c.broken = c.broken || room > unlimited/(len(c.room)+1)
	return int32(room)
}

// countAll counts every node anew.
func (c *subtreeTable) countAll() {
	clear(c.units)
	clear(c.low)
	c.with, c.large, c.several = [little]int32{}, 0, 0
	c.classes = nil
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
func (c *subtreeTable) tally(room int32, by int) {
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
func (c *subtreeTable) whole(room int32) int32 {
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
func (c *subtreeTable) count(node int) {
	before, now := c.room[node], c.roomOn(node)
	if before == now || c.broken {
		return
	}
	wholes := c.several == 0
	c.room[node] = now
	c.tally(before, -1)
	c.tally(now, 1)
	if wholes != (c.several == 0) { // costs are counted in another way
		c.classes = nil
		for v := range c.cost {
			c.cost[v] = unknownCost
		}
	}
	leaf := c.lay.leaves[node]
	was, is := c.low[leaf], c.whole(now)
	c.low[leaf] = is
	c.units[leaf] = now
	c.forget(leaf)
	for v := c.lay.vertices[leaf].parent; v >= 0; v = c.lay.vertices[v].parent {
		c.units[v] += now - before
		c.cost[v] = unknownCost
		c.forget(v)
		if was != is {
			was, is = c.relow(v, was, is)
		}
	}
}

// retain stores classes and their fronts for the next question, but nothing of the gang, if they take at most
// mostRetained bytes: each node that changes leaves classes behind, and where nodes hold many members one class of a
// block can have a megabyte of points.
func (c *subtreeTable) retain(of *classes) {
	if of.solver = nil; of.bytes() > mostRetained(len(c.lay.vertices)) {
		of = nil
	}
	c.classes = of
}

// mostRetained returns the most bytes of classes that are retained for a fleet of so many vertices.
func mostRetained(vertices int) int {
	const least, perVertex = 1 << 16, 32
	return least + perVertex*vertices
}

func (c *subtreeTable) forget(v int) {
	if c.classes != nil {
		c.classes.forget(v)
	}
}

// relow updates low of a vertex after a change of a child's. It returns the vertex's before and after.
func (c *subtreeTable) relow(v int, was, is int32) (before, now int32) {
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
func (c *subtreeTable) fits() bool {
	switch {
	case c.required < 0:
		return int(c.units[0]) >= c.target
	case c.required >= len(c.lay.ladder):
		return c.low[0] > 0
	}
	return slices.ContainsFunc(c.domains[c.required+1], func(v int32) bool { return int(c.units[v]) >= c.target })
}
