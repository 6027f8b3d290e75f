package topology

import (
	"cmp"
	"iter"
	"slices"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// candidate is a vertex that holds the gang, and the cost of the gang there.
type candidate struct {
	v    int
	cost int64
}

// best returns the cheapest vertex that holds all members; of equal ones the one further in, then the one with least
// room, then that in the fuller surroundings, then the first. Four members fit a rack of 4, a rack of 6 and the block
// of both: the racks cost the nodes only, the block two racks more, and the rack of 4 has less room. The block is not
// even priced: its atLeast is above that.
func (s *solver) best() (candidate, bool) {
	if s.table != nil {
		return s.bestByTable()
	}
	best, found := candidate{}, false
	for v := range s.scope() {
		if !s.roomy(v) || found && s.atLeast(v) > best.cost {
			continue
		}
		c := candidate{v, s.cost(v)}
		if c.cost != knapsack.Never && (!found || s.compare(c, best) < 0) {
			best, found = c, true
		}
	}
	return best, found
}

// scope yields the vertices that may hold the whole gang, inner ones first: those around its running members that do
// not leave a domain of the required level.
func (s *solver) scope() iter.Seq[int] {
	return func(yield func(int) bool) {
		for v, u := range slices.Backward(s.lay.vertices) {
			inside := u.level >= s.required
			if inside && s.count(s.placed, v) == s.count(s.placed, 0) && !yield(v) {
				return
			}
		}
	}
}

// roomy reports whether the vertex has room for the gang, and those around it allow it.
func (s *solver) roomy(v int) bool {
	if units, layer := s.target(v); s.holds(v, layer) < units {
		return false
	}
	if s.spread < 0 && s.fit == nil {
		return true
	}
	for w := s.lay.vertices[v].parent; w >= 0; w = s.lay.vertices[w].parent {
		if !s.allows(w) {
			return false
		}
	}
	return true
}

// allows reports whether the rules of the vertex allow the whole gang inside it.
func (s *solver) allows(v int) bool {
	units, layer := s.target(v)
	if s.lay.vertices[v].level == s.segment {
		return s.limitMembers(v, s.few.Full()) >= len(s.kinds[0].ranks) && s.limitSegments(v, layer) >= units
	}
	return s.limit(v, layer) >= units
}

// cost is the least cost of the gang with v as the smallest vertex around it, or less if a smaller one would do.
func (s *solver) cost(v int) int64 {
	if whole, kids, ok := s.narrowable(v); ok {
		if n, cost, ok := s.narrow(v, whole, kids); ok {
			s.narrowed = n
			return s.settled(v, cost)
		}
	}
	units, layer := s.target(v)
	f := s.inside(v)
	if layer >= len(f) {
		return knapsack.Never
	}
	return s.settled(v, s.mixFew.At(f[layer], units))
}

// narrowable reports whether the vertex has children that no simpler way combines, and the rules of the vertex itself
// allow the gang. It returns the share that the children are to hold together: members, if segments begin at the
// vertex.
func (s *solver) narrowable(v int) (knapsack.Share, []int, bool) {
	id := s.classes.find(v)
	kids := s.classes.kidsOf(v)
	if len(kids) < 2 || s.classes.all[id].front != nil || !s.allows(v) {
		return knapsack.Share{}, nil, false
	}
	if _, ok := s.cheapestFirst(kids); ok {
		return knapsack.Share{}, nil, false
	}
	if s.lay.vertices[v].level == s.segment {
		return knapsack.Share{Units: len(s.kinds[0].ranks), Layer: s.few.Full()}, kids, true
	}
	units, layer := s.target(v)
	return knapsack.Share{Units: units, Layer: layer}, kids, true
}

// narrowed holds the ways to place the whole gang in a vertex, without those that cannot be optimal.
type narrowed struct {
	v     int
	rests []knapsack.ParetoFront
}

// narrow returns the least cost of the whole in the vertex's children; false if it has to be found in the full table.
func (s *solver) narrow(v int, whole knapsack.Share, kids []int) (narrowed, int64, bool) {
	m, _ := s.mixerOf(v)
	rests, cost, ok := m.Reduce(s.pricedAll(kids), whole)
	return narrowed{v, rests}, cost, ok
}

// settled turns the sum of weights inside a vertex into a cost.
func (s *solver) settled(v int, cost int64) int64 {
	level := s.lay.vertices[v].level
	if cost == knapsack.Never {
		return knapsack.Never
	}
	if s.exact() {
		return cost / 2 // each pair was counted from both sides
	}
	if s.single && level < len(s.lay.ladder) {
		cost += s.weights[len(s.weights)-1] * int64(len(s.kinds[0].ranks))
	}
	if s.gang.Communication == Chain {
		for l := level + 1; l < len(s.weights); l++ {
			cost -= s.weights[l] // a chain enters one domain less than it uses
		}
	}
	return cost
}

// atLeast is a lower bound of the cost of a vertex that is not a node: two domains of each level further in are used.
func (s *solver) atLeast(v int) int64 {
	cost := int64(0)
	if s.labeled {
		return 0 // of some levels none may be counted
	}
	for l := s.lay.vertices[v].level + 1; l < len(s.weights); l++ {
		domains := int64(2)
		if s.single && l == len(s.lay.ladder) {
			domains = max(2, int64(len(s.kinds[0].ranks)))
		}
		switch s.gang.Communication {
		case Ring:
			cost += s.weights[l] * domains
		case Chain:
			cost += s.weights[l] * (domains - 1)
		case AllToAll:
			cost += s.weights[l] * int64(len(s.gang.Members)-1)
		}
	}
	return cost
}

// compare orders candidates.
func (s *solver) compare(a, b candidate) int {
	u, v := s.lay.vertices[a.v], s.lay.vertices[b.v]
	order := cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(v.level, u.level))
	for x, y := a.v, b.v; order == 0 && x >= 0 && y >= 0; x, y = s.lay.vertices[x].parent, s.lay.vertices[y].parent {
		order = cmp.Compare(s.units[x], s.units[y])
	}
	return cmp.Or(order, cmp.Compare(a.v, b.v))
}
