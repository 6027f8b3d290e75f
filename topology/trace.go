package topology

import (
	"cmp"
	"slices"
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
		if s.narrowed.v != v || len(s.narrowed.rest) == 0 {
			_, ok = s.narrow(v, whole, kids)
		}
		if ok {
			t.top = s.narrowed
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
		if layer >= t.few.count() {
			units += len(t.segments.short)
			t.short = v
		}
		layer %= t.few.count()
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
	shares := t.shares(kids, t.rest(v), units, layer)
	t.sort(kids, shares)
	for i, kid := range kids {
		t.fill(kid, shares[i].units, shares[i].layer)
	}
}

// put places members on a node.
func (t *trace) put(node, units, layer int) {
	from := len(t.memory)
	t.memory = append(append(t.memory, units), t.few.digits(layer)...)
	t.spots = append(t.spots, spot{node, t.memory[from:len(t.memory):len(t.memory)]})
}

// share is what one child holds.
type share struct{ units, layer int }

// shares divides the units and the layer's members among the children.
func (t *trace) shares(kids []int, rest []front, units, layer int) []share {
	if rest == nil {
		return t.flatShares(kids, units)
	}
	shares := make([]share, len(kids))
	for i, kid := range kids {
		shares[i] = t.choose(kid, rest[i], rest[i+1], share{units, layer})
		units, layer = max(units-shares[i].units, 0), layer-shares[i].layer
	}
	return shares
}

// sort gives the larger shares of children that look the same to the first of them by name.
func (t *trace) sort(kids []int, shares []share) {
	alike := make(map[int32][]int)
	for i, kid := range kids {
		class := t.classes.find(kid)
		alike[class] = append(alike[class], i)
	}
	for _, at := range alike { // kids are from last to first; each group is sorted by itself
		sorted := make([]share, len(at))
		for i, k := range at {
			sorted[i] = shares[k]
		}
		slices.SortFunc(sorted, func(a, b share) int {
			return cmp.Or(cmp.Compare(a.units, b.units), cmp.Compare(a.layer, b.layer))
		})
		for i, k := range at {
			shares[k] = sorted[i]
		}
	}
}

// rest returns what can be placed in the vertex's children from each on, nil if the children all offer the same.
func (t *trace) rest(v int) []front {
	if t.top.v == v {
		return t.top.rest
	}
	t.inside(v)
	return t.classes.all[t.classes.find(v)].rest
}

// choose returns the share of the first child: what it prefers of all that keeps the whole cheapest.
func (t *trace) choose(kid int, all, rest front, whole share) share {
	m, _ := t.mixerOf(t.lay.vertices[kid].parent)
	own := t.priced(kid)
	cost := t.at(all[whole.layer], whole.units)
	best := share{units: -1}
	m.layers.splits(whole.layer, func(e, f int) {
		if best.units == 0 {
			return
		}
		for i := len(own[e]) - 1; i >= -1; i-- {
			n := 0 // the last to be asked, and the first to be preferred
			if i >= 0 {
				n = min(int(own[e][i].n), whole.units)
			}
			if (n > best.units || n == 0) && t.fits(own[e], n, rest[f], whole.units-n, cost) {
				best = share{n, e}
			}
		}
	})
	return best
}

// fits reports whether n units in a child and the others in the rest cost as much as the whole.
func (t *trace) fits(own line, n int, rest line, others int, cost int64) bool {
	a, b := t.at(own, n), t.at(rest, others)
	return a != never && b != never && a+b == cost
}

// flatShares chooses among children that cost the same: the fewest that hold the units.
func (t *trace) flatShares(kids []int, units int) []share {
	sums := make([]int, len(kids)+1)
	for i, kid := range kids {
		sums[i+1] = sums[i] + int(t.units[kid])
	}
	fewest := 0
	for sums[fewest] < units {
		fewest++
	}
	fee, _ := t.fee(kids)
	shares := make([]share, len(kids))
	for i, kid := range kids {
		last := i + fewest // with the next ones instead of this one
		if fee == 0 {
			last = len(kids) - 1
		}
		if units == 0 || last < len(kids) && sums[last+1]-sums[i+1] >= units {
			continue
		}
		shares[i].units = min(int(t.units[kid]), units)
		units -= shares[i].units
		fewest--
	}
	return shares
}
