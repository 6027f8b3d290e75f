package topology

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// trace finds the nodes for a target whose cost the fronts gave. In a vertex the children choose in order of
// preference, the roomiest first: each prefers to hold nothing, which leaves large domains whole, and else as much as
// possible, which leaves the least behind. Five members on racks of 4, 3 and 2 nodes: the first holds nothing, as the
// others hold 5 for the same two racks; the second holds 3, which leaves 2 (ExamplePlace).
type trace struct {
	*solver
	// places[kind] are the nodes of the kind's members, in depth-first order; a node is there for each of its members.
	places [][]int
	// stretches have the nodes of the main kind's members, in the same order.
	stretches []stretch
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
	t.places = make([][]int, len(s.kinds))
	for i, k := range s.kinds {
		t.places[i] = make([]int, 0, len(k.ranks))
	}
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
		t.put(u.first, units, layer)
		return
	}
	if t.brimful(v, units) {
		t.fillAll(v)
		return
	}
	// The vertex's own children in the order in which those of the class's first vertex were combined.
	kids := t.classes.ownKids(v)
	shares := t.shares(v, kids, units, layer)
	t.sort(kids, shares)
	for _, i := range depthFirst(kids) {
		t.fill(kids[i], shares[i].Units, shares[i].Layer)
	}
}

// depthFirst returns the places of the children in the layout's order.
func depthFirst(kids []int) []int {
	order := make([]int, len(kids))
	for i := range order {
		place := len(kids) - 1 - i // children with equal room are in reverse order
		order[i] = keyed(kids[place], place)
	}
	slices.Sort(order)
	for i, kid := range order {
		order[i] = indexOf(kid)
	}
	return order
}

// brimful reports whether so many units are all that the vertex holds, and no rule inside holds members back: then
// there is nothing to choose.
func (t *trace) brimful(v, units int) bool {
	inside := t.segment < t.lay.vertices[v].level && t.spread < 0 && t.spares < 0
	return inside && units == int(t.units[v]) && len(t.room) == 1 && t.placed == nil
}

// fillAll fills every node of the vertex.
func (t *trace) fillAll(v int) {
	u, room, places := t.lay.vertices[v], t.room[0], t.places[0]
	nodes := t.lay.nodes[u.first:u.last]
	if t.whole && int(t.units[v]) == len(nodes) {
		t.places[0] = append(places, nodes...) // one on each
		t.reach(u.first, u.last)
		return
	}
	for i, node := range nodes {
		if room[node] > 0 {
			t.reach(u.first+i, u.first+i+1)
		}
		for range room[node] {
			places = append(places, node)
		}
	}
	t.places[0] = places
}

// put places members on the node at a position of the layout.
func (t *trace) put(position, units, layer int) {
	node := t.lay.nodes[position]
	if units > 0 {
		t.reach(position, position+1)
	}
	t.at(0, node, units)
	for i, n := range t.few.Digits(layer) {
		t.at(i+1, node, n)
	}
}

// reach adds positions behind all others to the stretches.
func (t *trace) reach(first, last int) {
	if n := len(t.stretches); n > 0 && t.stretches[n-1].last == int32(first) {
		t.stretches[n-1].last = int32(last)
		return
	}
	t.stretches = append(t.stretches, stretch{int32(first), int32(last)})
}

// at places n members of a kind on a node.
func (t *trace) at(kind, node, n int) {
	for range n {
		t.places[kind] = append(t.places[kind], node)
	}
}

// shares divides the units and the layer's members among the children.
func (t *trace) shares(v int, kids []int, units, layer int) []knapsack.Share {
	rest := t.rest(v)
	if rest == nil {
		return t.greedyShares(kids, units)
	}
	m, _ := t.mixerOf(v)
	shares := make([]knapsack.Share, len(kids))
	for i, kid := range kids {
		shares[i] = m.Choose(t.priced(kid), rest[i], rest[i+1], knapsack.Share{Units: units, Layer: layer})
		units, layer = max(units-shares[i].Units, 0), layer-shares[i].Layer
	}
	return shares
}

// sort gives the larger shares of children that look the same to the first of them by name. Those have equal room, and
// so are neighbors of each other or of children of other classes with that room.
func (t *trace) sort(kids []int, shares []knapsack.Share) {
	for from := 0; from < len(kids); {
		to, same := from+1, true
		for ; to < len(kids) && t.units[kids[to]] == t.units[kids[from]]; to++ {
			same = same && shares[to] == shares[from]
		}
		if !same {
			t.sortAlike(kids[from:to], shares[from:to])
		}
		from = to
	}
}

// sortAlike is sort for children of equal room.
func (t *trace) sortAlike(kids []int, shares []knapsack.Share) {
	alike := make([]int, len(kids)) // class and place of each
	for i, kid := range kids {
		alike[i] = keyed(int(t.classes.find(kid)), i)
	}
	slices.Sort(alike)
	var sorted []knapsack.Share
	for from := 0; from < len(alike); { // kids are from last to first; each group is sorted by itself
		class := keyOf(alike[from])
		sorted = sorted[:0]
		for _, k := range alike[from:] {
			if keyOf(k) != class {
				break
			}
			sorted = append(sorted, shares[indexOf(k)])
		}
		slices.SortFunc(sorted, func(a, b knapsack.Share) int {
			return cmp.Or(cmp.Compare(a.Units, b.Units), cmp.Compare(a.Layer, b.Layer))
		})
		for i, share := range sorted {
			shares[indexOf(alike[from+i])] = share
		}
		from += len(sorted)
	}
}

// rest returns the fronts of the vertex's children from each on, nil if the children all offer the same.
func (t *trace) rest(v int) []knapsack.ParetoFront {
	if t.top.v == v {
		return t.top.rests
	}
	t.inside(v)
	return t.classes.all[t.classes.find(v)].rest
}

// greedyShares chooses among children that cost the same: the fewest that hold the units.
func (t *trace) greedyShares(kids []int, units int) []knapsack.Share {
	sums := make([]int, len(kids)+1)
	for i, kid := range kids {
		sums[i+1] = sums[i] + int(t.units[kid])
	}
	fewest := 0
	for sums[fewest] < units {
		fewest++
	}
	fee, _ := t.uniformPrice(kids)
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
