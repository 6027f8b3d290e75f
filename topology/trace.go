package topology

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// spot is members on one node: how many of each kind, the main one first.
type spot struct {
	node   int
	counts []int
}

// trace finds the nodes for a target whose cost the fronts gave. In a vertex the children are asked in order of
// preference, the roomiest first: each prefers to hold nothing, which keeps large domains whole, and else as much as
// possible, which leaves the least behind.
type trace struct {
	*solver
	spots []spot
	// memory holds the counts of all spots.
	memory []int
	// short is the vertex of the segments' level that holds the last, shorter segment, -1 if there is none.
	short int
	// top is the vertex around everything, if it was narrowed.
	top narrowed
}

func (s *solver) trace(v int) trace {
	t := trace{solver: s, short: -1, top: narrowed{v: -1}}
	if whole, kids, ok := s.narrowable(v); ok {
		t.top = s.narrowed
		if t.top.v != v || t.top.rests == nil {
			if t.top, _, ok = s.narrow(v, whole, kids); !ok {
				t.top.v = -1
			}
		}
	}
	units, layer := s.target(v)
	t.fill(v, units, layer)
	return t
}

// fill places the units and the layer's small members in the vertex.
func (t *trace) fill(v, units, layer int) {
	u := t.lay.vertices[v]
	if u.level == t.segment {
		units = units*t.segments.size + t.count(t.owed, v)
		if layer >= t.few.Count() {
			units += len(t.segments.short)
			t.short = v
		}
		layer %= t.few.Count()
	}
	if units == 0 && layer == 0 && t.count(t.owed, v) == 0 {
		return
	}
	if u.level == len(t.lay.ladder) {
		if units == 0 && layer == 0 {
			return
		}
		t.put(t.lay.nodes[u.first], units, layer)
		return
	}
	// The vertex's own children in the order in which those of the class's first vertex were combined.
	kids := t.classes.kids(v)
	shares := t.shares(v, kids, units, layer)
	t.sort(kids, shares)
	for i, kid := range kids {
		t.fill(kid, shares[i].Units, shares[i].Layer)
	}
}

// put places members on a node.
func (t *trace) put(node, units, layer int) {
	from := len(t.memory)
	t.memory = append(append(t.memory, units), t.few.Digits(layer)...)
	t.spots = append(t.spots, spot{node, t.memory[from:len(t.memory):len(t.memory)]})
}

// shares divides the units and the layer's members among the children.
func (t *trace) shares(v int, kids []int, units, layer int) []knapsack.Share {
	rest := t.rest(v)
	if rest == nil {
		return t.flatShares(kids, units)
	}
	m, _ := t.mixerOf(v)
	shares := make([]knapsack.Share, len(kids))
	for i, kid := range kids {
		shares[i] = m.Choose(t.priced(kid), rest[i], rest[i+1], knapsack.Share{Units: units, Layer: layer})
		units, layer = max(units-shares[i].Units, 0), layer-shares[i].Layer
	}
	return shares
}

// sort gives the larger shares of children that look the same to the first of them by name.
func (t *trace) sort(kids []int, shares []knapsack.Share) {
	alike := make(map[int32][]int)
	for i, kid := range kids {
		class := t.classes.find(kid)
		alike[class] = append(alike[class], i)
	}
	for _, at := range alike { // kids are from last to first; each group is sorted by itself
		sorted := make([]knapsack.Share, len(at))
		for i, k := range at {
			sorted[i] = shares[k]
		}
		slices.SortFunc(sorted, func(a, b knapsack.Share) int {
			return cmp.Or(cmp.Compare(a.Units, b.Units), cmp.Compare(a.Layer, b.Layer))
		})
		for i, k := range at {
			shares[k] = sorted[i]
		}
	}
}

// rest returns what can be placed in the vertex's children from each on, nil if the children all offer the same.
func (t *trace) rest(v int) []knapsack.Front {
	if t.top.v == v {
		return t.top.rests
	}
	t.inside(v)
	return t.classes.all[t.classes.find(v)].rest
}

// flatShares chooses among children that cost the same: the fewest that hold the units.
func (t *trace) flatShares(kids []int, units int) []knapsack.Share {
	sums := make([]int, len(kids)+1)
	for i, kid := range kids {
		sums[i+1] = sums[i] + int(t.units[kid])
	}
	fewest := 0
	for sums[fewest] < units {
		fewest++
	}
	fee, _ := t.fee(kids)
	shares := make([]knapsack.Share, len(kids))
	for i, kid := range kids {
		last := i + fewest // with the next ones instead of this one
		if fee == 0 {
			last = len(kids) - 1
		}
		if units == 0 || last < len(kids) && sums[last+1]-sums[i+1] >= units {
			continue
		}
		shares[i].Units = min(int(t.units[kid]), units)
		units -= shares[i].Units
		fewest--
	}
	return shares
}
