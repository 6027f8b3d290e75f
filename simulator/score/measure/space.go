package measure

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// space measures the use of the free accelerators. It is sampled some thousands of times in a run, so it caches the
// room of each node, and updates only nodes that changed.
type space struct {
	holdings *holdings
	domains  *domains
	shapes   []shape
	classes  []class
	// weight is the sum of the classes' weights.
	weight int64
	// rooms[d] is the number of accelerators of domain d of the outermost level on nodes that are wholly free; whole[n]
	// is node n's part of it.
	rooms, whole []int64
	// free is the number of free accelerators, freeOn that on each node.
	free   int64
	freeOn []int64
}

// shape is one kind of member: its demand, its number of accelerators, and the number of such members that each node
// holds.
type shape struct {
	demand topology.Capacity
	barred []string
	takes  int64
	places []int64
	// sums[l][d] is the number that domain d of a level holds, for levels of some class; the fleet is behind that of
	// nodes.
	sums [][]int64
}

// class is the gangs of a size and shape that have to be, or would like to be, in one domain of a level.
type class struct {
	shape  int
	size   int64
	level  int
	weight int64
}

// mostClasses is the largest number of classes of gangs; most traces have fewer.
const mostClasses = 64

func newSpace(h *holdings, d *domains) *space {
	n := len(h.left)
	s := &space{
		holdings: h, domains: d, whole: make([]int64, n), freeOn: make([]int64, n),
		rooms: make([]int64, d.count(0)),
	}
	s.mix(h.scene)
	for _, c := range s.classes {
		of := &s.shapes[c.shape]
		of.places = make([]int64, n)
		if of.sums == nil {
			of.sums = make([][]int64, len(d.of)+1)
		}
		of.sums[c.level] = make([]int64, d.count(c.level))
	}
	return s
}

// count returns the number of domains of a level; the fleet is a domain behind the level of nodes.
func (d *domains) count(level int) int {
	if level >= len(d.counts) {
		return 1
	}
	return d.counts[level]
}

// at is the domain of a level that a node is in.
func (d *domains) at(level, node int) int32 {
	if level >= len(d.of) {
		return 0
	}
	return d.of[level][node]
}

// mix makes the classes of the trace's gangs: by the demand of the most numerous of their members that take
// accelerators, their number, and the level. A class weighs as much as the accelerators that its gangs request: by
// number, the small jobs of any trace would hide that none of the large ones has room. The classes are the heaviest,
// those of equal weight in the order of their first job.
func (s *space) mix(of *scenario.Scenario) {
	type kind struct {
		shape    int
		size     int64
		required string
	}
	var kinds []kind
	weights := make(map[kind]int64)
	for i := range of.Jobs {
		g := &of.Jobs[i].Gang
		main, size := s.main(g)
		if main < 0 {
			continue
		}
		k := kind{main, size, g.Required}
		if weights[k] == 0 {
			kinds = append(kinds, k)
		}
		weights[k] += size * s.shapes[k.shape].takes
	}
	slices.SortStableFunc(kinds, func(a, b kind) int { return cmp.Compare(weights[b], weights[a]) })
	for _, k := range kinds[:min(len(kinds), mostClasses)] {
		s.classes = append(s.classes, class{k.shape, k.size, s.level(k.shape, k.size, k.required), weights[k]})
		s.weight += weights[k]
	}
}

// main is the shape of the most numerous members that take accelerators, and their number; -1 if none does.
func (s *space) main(g *topology.Gang) (of int, size int64) {
	counts, best := make([]int64, len(g.Shapes)), -1
	for _, m := range g.Members {
		counts[m.Shape]++
	}
	for i, n := range counts {
		if s.takes(g.Shapes[i].Demand) > 0 && (best < 0 || n > counts[best]) {
			best = i
		}
	}
	if best < 0 {
		return -1, 0
	}
	like := &g.Shapes[best]
	of = slices.IndexFunc(s.shapes, func(o shape) bool {
		return slices.Equal(o.demand, like.Demand) && slices.Equal(o.barred, like.Barred)
	})
	if of < 0 {
		of = len(s.shapes)
		s.shapes = append(s.shapes, shape{demand: like.Demand, barred: like.Barred, takes: s.takes(like.Demand)})
	}
	return of, counts[best]
}

func (s *space) takes(demand topology.Capacity) int64 {
	if a := s.holdings.scene.Accelerator; a < len(demand) {
		return demand[a]
	}
	return 0
}

// level returns the required one, or else the innermost with a domain that could hold the gang if the fleet were empty.
func (s *space) level(of int, size int64, required string) int {
	if at := s.domains.level(required); at >= 0 {
		return at
	}
	for l, group := range slices.Backward(s.domains.of) {
		sums := make([]int64, s.domains.count(l))
		for node, total := range s.holdings.scene.Ledger.Total {
			sums[group[node]] += s.shapes[of].room(total, node)
		}
		if len(sums) > 0 && slices.Max(sums) >= size {
			return l
		}
	}
	return len(s.domains.of)
}

// room returns the number of members of the shape that a capacity of a node holds.
func (o *shape) room(c topology.Capacity, node int) int64 {
	if node < len(o.barred) && o.barred[node] != "" {
		return 0
	}
	n := int64(-1)
	for r, amount := range o.demand {
		if amount > 0 && (n < 0 || c[r]/amount < n) {
			n = c[r] / amount
		}
	}
	return max(n, 0)
}

// refresh updates the caches for nodes that changed.
func (s *space) refresh() {
	h := s.holdings
	for _, node := range h.changed {
		h.marked[node] = false
		free := h.free.Free[node]
		for i := range s.shapes {
			s.shapes[i].refresh(s.domains, node, free)
		}
		now := free[h.scene.Accelerator]
		s.free += now - s.freeOn[node]
		s.freeOn[node] = now
		if now != h.total(node) || h.used[node] != 0 {
			now = 0
		}
		s.rooms[s.domains.at(0, node)] += now - s.whole[node]
		s.whole[node] = now
	}
	h.changed = h.changed[:0]
}

func (o *shape) refresh(d *domains, node int, free topology.Capacity) {
	if o.places == nil {
		return // no class is about it
	}
	now := o.room(free, node)
	if now == o.places[node] {
		return
	}
	for l, sums := range o.sums {
		if sums != nil {
			sums[d.at(l, node)] += now - o.places[node]
		}
	}
	o.places[node] = now
}

// fragmentation is the part of the free accelerators that is of no use to a gang of the mix: the remainder when each
// domain of the gang's level is filled with gangs like it. Accelerators on nodes that do not hold a single member are
// of no use either. None free is 0.
func (s *space) fragmentation() float64 {
	free := s.free
	if free == 0 || s.weight == 0 {
		return 0
	}
	wasted := weighted{}
	for _, c := range s.classes {
		of, usable := &s.shapes[c.shape], int64(0)
		for _, places := range of.sums[c.level] {
			usable += places / c.size * c.size
		}
		wasted.add(float64(free-usable*of.takes)/float64(free), float64(c.weight))
	}
	return wasted.sum / wasted.weight
}

// largest returns the most accelerators that the wholly free nodes of a domain of the outermost level have.
func (s *space) largest() int64 { return max(slices.Max(s.rooms), 0) }
