package topology

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// solver finds the cheapest way to put the members of an ask below a vertex of one layout: the tree knapsack
// (topology/DESIGN.md). It works bottom-up: the front of a vertex holds the cost of any number of members there.
// Vertices that look the same share one front (see class).
//
// Example: two racks of 4 and 3 free nodes, 100 for a rack and 100 for a node. Their fronts, with the use of the rack
// counted, are [0:0, 1:200, 2:300, 3:400, 4:500] and the same up to 3:400. Five members cost 700 as 4+1, 3+2 or 2+3:
// 200 for two racks and 500 for five nodes. The block's front is [0:0, 1:200, … 4:500, 5:700, 6:800, 7:900]. Nodes that
// hold one member each are counted once for all (see single), so the computed fronts are [0:0, 4:100] and [0:0, 3:100],
// and [0:0, 4:100, 7:200] for the block.
//
// For a ring or a chain in the best rank order, the cost is the sum of w(level) over the domains used; for all-to-all
// the sum of w(level)·s·(K-s) over the domains, s being the members inside and K all, halved in the end.
type solver struct {
	*ask
	lay *layout
	// weights by ladder position, nodes last.
	weights []int64
	// required, segment, spread and spares are ladder positions. No required level is -1, the root; of the others
	// noLevel.
	required, segment, spread, spares int
	// few and many are the layers below the segments' level (or everywhere, if there are no segments) and further out.
	few, many knapsack.Layers
	mixFew    *knapsack.Mixer
	mixMany   *knapsack.Mixer
	// room[layer][node] is the number of members of the main kind that the node holds beside the small ones; -1 if
	// these do not fit.
	room [][]int32
	// whole is set if the members are of one kind and no node holds two. Then they use as many nodes wherever they are;
	// single, if nodes therefore need not be counted as domains.
	whole, single bool
	// units are the numbers of the main kind that each vertex holds under the caps: members, or segments further out
	// than their level.
	units []int32
	// layerCapacity are units for every layer; nil if units suffice (see countLayerCapacity).
	layerCapacity [][]int32
	// fit counts the nodes below a vertex that could take a main member; nil unless there are spares.
	fit []int32
	// inexact is set if spares are chosen in a way that may miss a better placement.
	inexact bool
	// placed, running and owed count, below each vertex, running members, segments that run, and lost members of these.
	// They are nil if nothing runs.
	placed, running, owed []int32
	classes               *classes
	// labeled leaves out a vertex's cost at levels whose label it lacks.
	labeled bool
	// table has room, units and costs that were counted before; nil if they are counted for this question.
	table *subtreeTable
	// narrowed is the last vertex whose cost was found by narrow.
	narrowed narrowed
}

func newSolver(a *ask, lay *layout, weights []int64, r rules) *solver {
	s := &solver{
		ask: a, lay: lay, required: lay.position(r.required),
		segment: lay.ruled(r.segment), spread: lay.ruled(r.spread), spares: lay.ruled(r.spares),
		few: knapsack.NewLayers(a.small()),
	}
	for _, level := range lay.ladder {
		s.weights = append(s.weights, weights[level])
	}
	s.weights = append(s.weights, weights[len(lay.ladder)])
	s.many = s.few
	if s.segment >= 0 && len(a.segments.short) > 0 {
		s.many = s.few.With(1)
	}
	exact := a.gang.Communication == AllToAll
	s.mixFew, s.mixMany = knapsack.NewMixer(s.few, exact), knapsack.NewMixer(s.many, exact)
	if len(a.placedOn) > 0 {
		s.countPlaced()
		s.spares = noLevel // spares are there to be used now
	}
	if s.table = s.known(r); s.table == nil {
		s.countRoom()
		s.countUnits()
		s.countLayerCapacity()
	}
	if s.classes == nil {
		s.classes = newClasses(s)
	}
	return s
}

// known returns the counts of earlier questions, nil if they do not answer this one.
func (s *solver) known(r rules) *subtreeTable {
	n := s.ledger.noted()
	if n == nil || r != s.rules || !s.plain() {
		return nil
	}
	t := n.table(s.ask)
	if t != nil {
		s.room, s.units, s.whole = [][]int32{t.room}, t.units, t.several == 0
		s.single = s.whole
		if s.classes = t.classes; s.classes != nil {
			s.classes.solver = s
		}
	}
	return t
}

func (s *solver) exact() bool { return s.mixFew.Exact() }

// countRoom fills room.
func (s *solver) countRoom() {
	s.room = make([][]int32, s.few.Count())
	s.whole = s.few.Count() == 1
	for e := range s.room {
		digits := s.few.Digits(e)
		s.room[e] = make([]int32, len(s.lay.leaves))
		for node := range s.room[e] {
			s.room[e][node] = int32(s.roomOn(node, digits))
		}
	}
	for _, n := range s.room[0] {
		s.whole = s.whole && n <= 1
	}
	// With segments at node level a unit of a node is a segment, so single must be off.
	s.single = s.whole && s.segment != len(s.lay.ladder)
	for node := range s.placedOn {
		s.single = s.single && s.room[0][node] == 0
	}
}

// roomOn returns the number of members of the main kind that fit on the node beside these small members, -1 if these do
// not.
func (s *solver) roomOn(node int, small []int) int {
	if s.lay.leaves[node] < 0 || s.unlabelled(node) {
		if sum(small) > 0 {
			return -1
		}
		return 0
	}
	left, limit := s.ledger.Free[node], len(s.kinds[0].ranks)
	if s.gang.PerNode > 0 {
		limit = s.gang.PerNode - s.placedOn[node] - sum(small)
	}
	for i, n := range small {
		k := s.kinds[i+1]
		if n > 0 && (k.barred(node) || limit < 0 || left.times(k.shape.Demand, n) < n) {
			return -1
		}
		if n > 0 {
			left = left.less(k.shape.Demand, n)
		}
	}
	if s.kinds[0].barred(node) || limit <= 0 {
		return 0
	}
	switch {
	case s.kinds[0].free():
		// Cap by the gang's size; otherwise equal nodes would rank differently by PerNode.
		limit = min(limit, len(s.kinds[0].ranks))
	case s.gang.PerNode == 0:
		limit = unlimited
	}
	return left.times(s.kinds[0].shape.Demand, limit)
}

func sum(counts []int) int {
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}

// countPlaced fills placed, running and owed.
func (s *solver) countPlaced() {
	s.placed = make([]int32, len(s.lay.vertices))
	s.running = make([]int32, len(s.lay.vertices))
	s.owed = make([]int32, len(s.lay.vertices))
	for node, n := range s.placedOn {
		s.addUp(s.placed, node, n)
	}
	if s.segment < 0 {
		return
	}
	for _, node := range s.segments.running {
		s.addUp(s.running, node, 1)
	}
	for _, b := range s.segments.broken {
		s.addUp(s.owed, b.near, len(b.lost))
	}
}

// addUp adds to the node's vertex and all around it.
func (s *solver) addUp(counts []int32, node, n int) {
	for v := s.lay.leaves[node]; v >= 0; v = s.lay.vertices[v].parent {
		counts[v] += int32(n)
	}
}

// countUnits fills units and fit, and reserves the smallest nodes of a domain as its spares if nodes hold several
// members.
func (s *solver) countUnits() {
	if s.spares >= 0 {
		s.countFit()
		if !s.whole {
			s.keepSmallest()
		}
	}
	s.units = make([]int32, len(s.lay.vertices))
	for v, u := range slices.Backward(s.lay.vertices) {
		if u.level == len(s.lay.ladder) {
			s.units[v] = max(s.room[0][s.lay.nodes[u.first]], 0)
		}
		if u.level == s.spread || u.level == s.spares {
			s.units[v] = min(s.units[v], int32(max(s.limit(v, 0), 0)))
		}
		if u.level == s.segment {
			n := int(s.units[v]) - s.count(s.owed, v)
			s.units[v] = int32(max(min(n/s.segments.size, s.limitSegments(v, 0)), 0))
		}
		if u.parent >= 0 {
			s.units[u.parent] = int32(min(int64(s.units[u.parent])+int64(s.units[v]), unlimited))
		}
	}
}

func (s *solver) countFit() {
	s.fit = make([]int32, len(s.lay.vertices))
	for node, n := range s.room[0] {
		if n > 0 {
			s.addUp(s.fit, node, 1)
		}
	}
}

// keepSmallest bars as many nodes of each domain as it must spare: those that hold least, the last of equal ones. For
// one kind that is exact if the domain has no domains inside.
func (s *solver) keepSmallest() {
	s.fit = nil
	s.inexact = len(s.room) > 1
	for v, u := range s.lay.vertices {
		if u.level != s.spares {
			continue
		}
		for kid := v + 1; kid < u.end; kid = s.lay.vertices[kid].end {
			s.inexact = s.inexact || s.lay.vertices[kid].level < len(s.lay.ladder)
		}
		all := slices.Clone(s.lay.nodes[u.first:u.last])
		fit := slices.DeleteFunc(slices.Clone(all), func(n int) bool { return s.room[0][n] <= 0 })
		if len(fit) < s.gang.Spares.Nodes {
			s.bar(all)
			continue
		}
		slices.Reverse(fit)
		slices.SortStableFunc(fit, func(a, b int) int { return int(s.room[0][a] - s.room[0][b]) })
		s.bar(fit[:s.gang.Spares.Nodes])
	}
}

// bar leaves no room on the nodes.
func (s *solver) bar(nodes []int) {
	for _, node := range nodes {
		for e := range s.room {
			s.room[e][node] = -1
		}
		s.room[0][node] = 0
	}
}

// spared reports whether a placement leaves the spares unused.
func (s *solver) spared(nodes []int) bool {
	level := s.rules.spares
	used := make(map[int]bool)
	for _, node := range nodes {
		used[node] = true
	}
	groups := s.lay.tree.layout().groups[level]
	spare := make(map[int32]int)
	for node, room := range s.room[0] {
		if room > 0 && !used[node] {
			spare[groups[node]]++
		}
	}
	return !slices.ContainsFunc(nodes, func(n int) bool { return spare[groups[n]] < s.gang.Spares.Nodes })
}

// count reads a vertex's count of something that may not exist.
func (s *solver) count(counts []int32, v int) int {
	if counts == nil {
		return 0
	}
	return int(counts[v])
}

// limit returns the number of units of the main kind that the rules allow in a vertex beside the small members of a
// layer, whatever its room.
func (s *solver) limit(v, layer int) int {
	if s.segment >= 0 && s.lay.vertices[v].level < s.segment {
		return s.limitSegments(v, layer)
	}
	return s.limitMembers(v, layer)
}

// limitMembers is the limit where units are members: further in than the segments' level, and in its domains before
// members become segments.
func (s *solver) limitMembers(v, layer int) int {
	level, limit := s.lay.vertices[v].level, unlimited
	small := s.few.Sum(layer % s.few.Count())
	if level == s.spread && s.segment < 0 {
		limit = min(limit, s.gang.Spread.Max-s.count(s.placed, v)-small)
	}
	if level == s.spares && s.fit != nil {
		limit = min(limit, int(s.fit[v])-s.gang.Spares.Nodes-small)
	}
	return limit
}

// limitSegments is the limit where units are segments: at their level and further out.
func (s *solver) limitSegments(v, layer int) int {
	level, limit := s.lay.vertices[v].level, unlimited
	short := 0
	if layer >= s.few.Count() {
		short = 1
	}
	if level == s.spread {
		limit = min(limit, s.gang.Spread.Max-s.count(s.running, v)-short)
	}
	if level == s.spares && s.fit != nil {
		nodes := int(s.fit[v]) - s.gang.Spares.Nodes - s.few.Sum(layer%s.few.Count()) - short*len(s.segments.short)
		limit = min(limit, floor(nodes, s.segments.size))
	}
	return limit
}

// floor divides, rounding down.
func floor(a, b int) int {
	if a < 0 {
		return -((b - 1 - a) / b)
	}
	return a / b
}

// members returns the number of members of the gang in a vertex, running ones included, that units of the main kind in
// a layer make.
func (s *solver) members(v, units, layer int) int {
	total := s.count(s.placed, v) + s.few.Sum(layer%s.few.Count())
	if !s.inSegments(v) {
		return total + units
	}
	if layer >= s.few.Count() {
		total += len(s.segments.short)
	}
	return total + units*s.segments.size + s.count(s.owed, v)
}

// inSegments reports whether units are segments in the vertex.
func (s *solver) inSegments(v int) bool {
	return s.segment >= 0 && s.lay.vertices[v].level <= s.segment
}

// target returns the numbers that a vertex with the whole gang must hold.
func (s *solver) target(v int) (units, layer int) {
	if s.inSegments(v) {
		return len(s.segments.full), s.many.Full()
	}
	return len(s.kinds[0].ranks), s.few.Full()
}

// weight returns the cost of using the vertex at all: one edge for each level that it stands for.
func (s *solver) weight(v int) int64 {
	u := s.lay.vertices[v]
	w := int64(0)
	if s.labeled {
		return s.weights[u.level]
	}
	for l := s.lay.vertices[u.parent].level + 1; l <= u.level; l++ {
		w += s.weights[l]
	}
	return w
}
