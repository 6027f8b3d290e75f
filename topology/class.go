package topology

import (
	"encoding/binary"
	"slices"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// classes groups vertices of a layout that hold the same placements below them: their fronts are computed once. Of 64
// racks of 16 nodes, 60 with 16 free ones and four with 15, there are two classes of racks and two of nodes, full and
// free. A class is made when a decision first asks for its vertex.
type classes struct {
	solver *solver
	// of maps a vertex to its class, in pages; that of a page is 0 if it is not known yet, else one more.
	of    []*classPage
	byKey map[string]int32
	all   []class
	key   []byte
	leafs map[int32]int32
	// memory holds the kids of all classes.
	memory []int
	// points counts the points of all fronts.
	points int
}

// bytes is about the memory that the classes take, without the pages.
func (c *classes) bytes() int {
	const ofClass, ofKid, ofPoint = 256, 8, 16
	return ofClass*len(c.all) + ofKid*len(c.memory) + ofPoint*c.points
}

// hold adds the points of fronts to the count.
func (c *classes) hold(fronts ...knapsack.ParetoFront) {
	for _, f := range fronts {
		for _, points := range f {
			c.points += len(points)
		}
	}
}

// class is vertices that look the same.
type class struct {
	// kids are the children of the vertex like in order of preference: the roomiest first, of equal ones the last.
	// Children without room are left out. like is one of the class, -1 if it changed since (see forget).
	kids []int
	like int
	// front holds the numbers that can be placed in a vertex of the class, nil until it is needed; rest[i] those that
	// can be placed in kids[i:] together, nil if there was a shorter way (see cheapestFirst).
	front knapsack.ParetoFront
	rest  []knapsack.ParetoFront
	// priced is front with the use of the vertex counted, at this weight.
	priced knapsack.ParetoFront
	weight int64
}

func newClasses(s *solver) *classes {
	return &classes{solver: s, of: make([]*classPage, 1+len(s.lay.vertices)/len(classPage{}))}
}

// classPage is the classes of so many vertices: most decisions read few.
type classPage [128]int32

// find returns the class of the vertex.
func (c *classes) find(v int) int32 {
	page := &c.of[v/len(classPage{})]
	if *page == nil {
		*page = new(classPage)
	}
	at := &(*page)[v%len(classPage{})]
	if *at == 0 {
		if s := c.solver; s.lay.vertices[v].level == len(s.lay.ladder) && len(s.room) == 1 && s.placed == nil {
			*at = c.leaf(v) + 1
		} else {
			*at = c.inner(v) + 1
		}
	}
	return *at - 1
}

// leaf finds the class of a node by its room alone.
func (c *classes) leaf(v int) int32 {
	s := c.solver
	room := s.units[v]
	if s.segment == len(s.lay.ladder) { // then units are segments
		room = s.room[0][s.lay.nodes[s.lay.vertices[v].first]]
	}
	id, ok := c.leafs[room]
	if !ok {
		id = c.add(nil, v)
		if c.leafs == nil {
			c.leafs = make(map[int32]int32)
		}
		c.leafs[room] = id
	}
	return id
}

func (c *classes) add(kids []int, like int) int32 {
	c.all = append(c.all, class{kids: kids, like: like})
	return int32(len(c.all) - 1)
}

// inner finds the class of a vertex by everything that its front depends on.
func (c *classes) inner(v int) int32 {
	s, u := c.solver, c.solver.lay.vertices[v]
	kids := c.kids(v)
	for _, kid := range kids {
		c.find(kid)
	}
	key := binary.AppendVarint(c.key[:0], int64(u.level))
	for _, counts := range [][]int32{s.placed, s.running, s.owed, s.fit} {
		key = binary.AppendVarint(key, int64(s.count(counts, v)))
	}
	if u.level == len(s.lay.ladder) {
		for _, room := range s.room {
			key = binary.AppendVarint(key, int64(room[s.lay.nodes[u.first]]))
		}
	}
	for _, kid := range kids {
		key = binary.AppendVarint(key, int64(c.find(kid)))
		key = binary.AppendVarint(key, int64(s.lay.vertices[kid].level))
	}
	c.key = key
	if id, ok := c.byKey[string(key)]; ok {
		return id
	}
	id := c.add(kids, v)
	if c.byKey == nil {
		c.byKey = make(map[string]int32)
	}
	c.byKey[string(key)] = id
	return id
}

// forget drops the class of a vertex whose room changed. Other vertices of the class retain it, with its computed
// fronts.
func (c *classes) forget(v int) {
	page := c.of[v/len(classPage{})]
	if page == nil || page[v%len(classPage{})] == 0 {
		return
	}
	at := &page[v%len(classPage{})]
	if k := &c.all[*at-1]; k.like == v {
		k.like = -1
	}
	*at = 0
}

// kidsOf returns the children that matter of some vertex of the class of v.
func (c *classes) kidsOf(v int) []int {
	k := &c.all[c.find(v)]
	if k.like < 0 {
		k.kids, k.like = c.kids(v), v
	}
	return k.kids
}

// ownKids returns the children that matter of the vertex itself.
func (c *classes) ownKids(v int) []int {
	if k := &c.all[c.find(v)]; k.like == v {
		return k.kids
	}
	return c.kids(v)
}

// kids returns the children that matter, in order of preference.
func (c *classes) kids(v int) []int {
	s := c.solver
	u := s.lay.vertices[v]
	m, _ := s.mixerOf(v)
	layers := m.Layers().Count()
	from := len(c.memory)
	for kid := v + 1; kid < u.end; kid = s.lay.vertices[kid].end {
		if u.level < s.segment && s.lay.vertices[kid].level > s.segment {
			continue // outside every domain of the segments' level
		}
		if s.units[kid] > 0 || layers > 1 || s.count(s.placed, kid) > 0 {
			c.memory = append(c.memory, keyed(int(s.units[kid]), kid))
		}
	}
	kids := c.memory[from:len(c.memory):len(c.memory)]
	slices.Sort(kids)
	slices.Reverse(kids)
	for i, kid := range kids {
		kids[i] = indexOf(kid)
	}
	return kids
}
