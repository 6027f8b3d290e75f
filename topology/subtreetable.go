package topology

import (
	"encoding/binary"
	"slices"
)

// subtreeTable counts, for one kind of members, how many the nodes and domains of one layout hold, and the cost of a
// gang of so many in each domain. Racks r1 and r2 with 2 and 3 free nodes of one block, for a gang of 3: units are 2, 3
// and 5, so r2 and the block hold it. A node of r1 is taken: units of the node, of r1 (1) and of the block (4) change,
// and costs of r1 and the block are unknown again; r2's still hold.
type subtreeTable struct {
	lay  *layout
	free []Capacity
	// demand is that of a member, limit the most members on a node, required the level that a node has to have a label
	// of (-1 for none), target the number of members of the gang.
	demand                  Capacity
	limit, required, target int
	// barred marks the nodes that take no member, nil if all may.
	barred []bool
	// room is by node, units (the sum below) by vertex. low is the smallest room of a node below that holds the whole
	// gang, 0 if none does.
	room, units, low []int32
	// cost is that of the gang in a domain, unknownCost if it was not computed since the last change below.
	cost []int64
	// with counts the nodes by their room where that is little, large the others; several is the number of those that
	// hold more than one member.
	with           [little]int32
	large, several int
	// broken is set if sums might not be exact.
	broken bool
	// read is the number of changes of the book that are in it.
	read int
	// classes and their fronts outlast a question; nil if there are none.
	classes *classes
	// domains are the vertices but nodes by level, the root's first; spans those that stand for each level (see
	// eachSpan).
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
	t := &subtreeTable{
		lay: lay, free: free, demand: slices.Clone(a.kinds[0].shape.Demand), limit: unlimited,
		required: a.rules.required, target: len(a.gang.Members),
		room: make([]int32, len(lay.leaves)), units: make([]int32, vertices), low: make([]int32, vertices),
		cost: make([]int64, vertices),
	}
	if a.gang.PerNode > 0 {
		t.limit = a.gang.PerNode
	}
	for node, rule := range a.kinds[0].shape.Barred {
		if rule != "" {
			if t.barred == nil {
				t.barred = make([]bool, len(t.room))
			}
			t.barred[node] = true
		}
	}
	t.domains, t.spans = make([][]int32, len(lay.ladder)+1), make([][]int32, len(lay.ladder))
	for v, u := range lay.vertices {
		if u.level < len(lay.ladder) {
			t.domains[u.level+1] = append(t.domains[u.level+1], int32(v))
		}
	}
	lay.eachSpan(func(v, level int, _ []int) { t.spans[level] = append(t.spans[level], int32(v)) })
	t.countAll()
	return t
}

// cloneInto returns a subtree table for other capacities, before they are counted, in the memory of an unused one, nil
// for none.
func (t *subtreeTable) cloneInto(old *subtreeTable, free []Capacity) *subtreeTable {
	if old == nil {
		old = &subtreeTable{}
	}
	room, units, low, cost := old.room[:0], old.units[:0], old.low[:0], old.cost[:0]
	*old = *t
	old.classes = nil
	old.free = free
	old.room, old.units, old.low = append(room, t.room...), append(units, t.units...), append(low, t.low...)
	old.cost = append(cost, t.cost...)
	return old
}

// roomOn returns the number of members that fit on the node.
func (t *subtreeTable) roomOn(node int) int32 {
	if t.lay.leaves[node] < 0 || t.barred != nil && t.barred[node] {
		return 0
	}
	if t.required >= 0 && t.required < len(t.lay.ladder) && t.lay.tree.roster.entry(node).path[t.required] == "" {
		return 0
	}
	room := t.free[node].times(t.demand, t.limit)
	t.broken = t.broken || room > unlimited/(len(t.room)+1)
	return int32(room)
}

// countAll counts every node anew.
func (t *subtreeTable) countAll() {
	clear(t.units)
	clear(t.low)
	t.with, t.large, t.several = [little]int32{}, 0, 0
	t.classes = nil
	for v := range t.cost {
		t.cost[v] = unknownCost
	}
	for node := range t.room {
		n := t.roomOn(node)
		t.room[node] = n
		t.tally(n, 1)
	}
	if t.broken {
		return
	}
	for v, u := range slices.Backward(t.lay.vertices) {
		if u.level == len(t.lay.ladder) {
			t.units[v] = t.room[t.lay.nodes[u.first]]
			t.low[v] = t.whole(t.units[v])
		}
		if u.parent >= 0 {
			t.units[u.parent] += t.units[v]
			t.low[u.parent] = lower(t.low[u.parent], t.low[v])
		}
	}
}

// tally counts one node more or less of a room.
func (t *subtreeTable) tally(room int32, by int) {
	if room < little {
		t.with[room] += int32(by)
	} else {
		t.large += by
	}
	if room > 1 {
		t.several += by
	}
}

// whole is the room of a node if it holds the whole gang, else 0.
func (t *subtreeTable) whole(room int32) int32 {
	if int(room) >= t.target {
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
func (t *subtreeTable) count(node int) {
	before, now := t.room[node], t.roomOn(node)
	if before == now || t.broken {
		return
	}
	wholes := t.several == 0
	t.room[node] = now
	t.tally(before, -1)
	t.tally(now, 1)
	if wholes != (t.several == 0) { // costs are counted in another way
		t.classes = nil
		for v := range t.cost {
			t.cost[v] = unknownCost
		}
	}
	leaf := t.lay.leaves[node]
	was, is := t.low[leaf], t.whole(now)
	t.low[leaf] = is
	t.units[leaf] = now
	t.forget(leaf)
	for v := t.lay.vertices[leaf].parent; v >= 0; v = t.lay.vertices[v].parent {
		t.units[v] += now - before
		t.cost[v] = unknownCost
		t.forget(v)
		if was != is {
			was, is = t.relow(v, was, is)
		}
	}
}

// retain stores classes and their fronts for the next question, but nothing of the gang, if they take at most
// mostRetained bytes: each node that changes leaves classes behind, and where nodes hold many members one class of a
// block can have a megabyte of points.
func (t *subtreeTable) retain(of *classes) {
	if of.solver = nil; of.bytes() > mostRetained(len(t.lay.vertices)) {
		of = nil
	}
	t.classes = of
}

// mostRetained returns the most bytes of classes that are retained for a fleet of so many vertices.
func mostRetained(vertices int) int {
	const least, perVertex = 1 << 16, 32
	return least + perVertex*vertices
}

func (t *subtreeTable) forget(v int) {
	if t.classes != nil {
		t.classes.forget(v)
	}
}

// relow updates low of a vertex after a change of a child's. It returns the vertex's before and after.
func (t *subtreeTable) relow(v int, was, is int32) (before, now int32) {
	before = t.low[v]
	if now = lower(before, is); before == was && was != 0 && (is == 0 || is > was) {
		now = 0
		for kid := v + 1; kid < t.lay.vertices[v].end; kid = t.lay.vertices[kid].end {
			now = lower(now, t.low[kid])
		}
	}
	t.low[v] = now
	return before, now
}

// fits reports whether some domain of the required level holds the gang.
func (t *subtreeTable) fits() bool {
	switch {
	case t.required < 0:
		return int(t.units[0]) >= t.target
	case t.required >= len(t.lay.ladder):
		return t.low[0] > 0
	}
	return slices.ContainsFunc(t.domains[t.required+1], func(v int32) bool { return int(t.units[v]) >= t.target })
}
