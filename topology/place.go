package topology

import (
	"cmp"
	"iter"
	"slices"
)

// Placement is the answer yes. Nodes[i] is the tree index of the node for Members[i]; Within is the smallest domain that
// holds all of them (the zero Domain if only the whole fleet does).
//
// Used[l] is the number of domains used at level l. A node that lacks the label counts there with its domain of the
// next level further in, or by itself if there is none: what is not known to be shared is not shared.
type Placement struct {
	Gang   string
	Within Domain
	Nodes  []int
	Used   []int
}

// Place finds nodes for all members of the gang, or says why there are none. free is what each node has left, indexed
// like the tree's nodes. Nothing is changed; a placement takes effect when the caller subtracts it from free.
func Place(t *Tree, free []Capacity, g Gang) (Placement, *Shortfall) {
	if t == nil || len(t.vertices) == 0 {
		return Place(NewTree(nil, nil), free, g)
	}
	if f := fault(t, free, g); f != "" {
		return Placement{}, &Shortfall{Gang: g.Name, Members: len(g.Members), Fault: f}
	}
	required, ok := t.Level(g.Required)
	switch {
	case g.Required == "":
		required = -1
	case !ok:
		return Placement{}, &Shortfall{
			Gang: g.Name, Members: len(g.Members), Unknown: g.Required, Known: t.Levels(),
		}
	}
	a := newAsk(t, free, g, required)
	if len(g.Members) == 0 {
		return a.placement(packing{}), nil
	}
	for v := range a.candidates() { // best first; a total order (P7)
		if p := a.pack(v); p.missing == 0 {
			return a.placement(p), nil
		}
	}
	return Placement{}, a.explain()
}

// ask is one gang to be placed in one snapshot.
type ask struct {
	tree  *Tree
	free  []Capacity
	gang  Gang
	kinds []kind
	// required is the level that must not be left, -1 for none.
	required int
	// scarce is the kind with the fewest slots in the fleet: how well a domain fits is judged by it.
	scarce int
}

func newAsk(t *Tree, free []Capacity, g Gang, required int) *ask {
	a := &ask{tree: t, free: free, gang: g, kinds: kinds(g), required: required}
	for i := range a.kinds {
		a.kinds[i].slots = a.kinds[i].count(t, free)
		if a.kinds[i].slots[0] < a.kinds[a.scarce].slots[0] {
			a.scarce = i
		}
	}
	return a
}

// candidates yields the vertices that may hold the gang, best first. One that has slots enough for each kind alone may
// still be too small for several kinds; for one kind the first never fails, so the others are sorted only when asked for.
func (a *ask) candidates() iter.Seq[int] {
	return func(yield func(int) bool) {
		best, ok := a.best()
		if !ok || !yield(best) {
			return
		}
		var rest []int
		for v := range a.scope() {
			if v != best && a.roomy(v) {
				rest = append(rest, v)
			}
		}
		slices.SortFunc(rest, a.compare)
		for _, v := range rest {
			if !yield(v) {
				return
			}
		}
	}
}

// best returns the first of the candidates.
func (a *ask) best() (int, bool) {
	best := -1
	for v := range a.scope() {
		if a.roomy(v) && (best < 0 || a.compare(v, best) < 0) {
			best = v
		}
	}
	return best, best >= 0
}

// scope yields the vertices that do not leave a domain of the required level.
func (a *ask) scope() iter.Seq[int] {
	return func(yield func(int) bool) {
		end := 0
		for v, u := range a.tree.vertices {
			if u.level == a.required {
				end = u.end
			}
			if v < end && !yield(v) {
				return
			}
		}
	}
}

// roomy reports whether the vertex has slots enough for each kind alone.
func (a *ask) roomy(v int) bool {
	for i := range a.kinds {
		if a.kinds[i].slots[v] < len(a.kinds[i].ranks) {
			return false
		}
	}
	return true
}

// compare orders candidates: further in, then fewer slots, which leaves less behind, then path order (P4).
func (a *ask) compare(u, v int) int {
	fit := 0
	if len(a.kinds) > 0 {
		slots := a.kinds[a.scarce].slots
		fit = cmp.Compare(slots[u], slots[v])
	}
	vertices := a.tree.vertices
	return cmp.Or(cmp.Compare(vertices[v].level, vertices[u].level), fit, cmp.Compare(u, v))
}

// placement turns a complete packing into the answer.
func (a *ask) placement(p packing) Placement {
	answer := Placement{
		Gang:  a.gang.Name,
		Nodes: make([]int, len(a.gang.Members)),
		Used:  make([]int, len(a.tree.levels)),
	}
	var nodes []int
	for i, spots := range p.spots {
		slices.SortFunc(spots, func(x, y spot) int { return cmp.Compare(x.node, y.node) })
		ranks := a.kinds[i].ranks
		for _, s := range spots {
			for _, rank := range ranks[:s.count] {
				answer.Nodes[rank] = s.node
			}
			ranks = ranks[s.count:]
			nodes = append(nodes, s.node)
		}
	}
	if len(nodes) == 0 {
		return answer
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	answer.Within = a.tree.domain(a.tree.around(nodes[0], nodes[len(nodes)-1]))
	a.tree.addUsed(answer.Used, nodes)
	return answer
}

// around returns the innermost domain (or the root) that holds both nodes, first ≤ last.
func (t *Tree) around(first, last int) int {
	v := t.vertices[t.leaves[first]].parent
	for t.vertices[v].last <= last {
		v = t.vertices[v].parent
	}
	return v
}

// addUsed counts the domains used by the nodes, which are in order and distinct. A vertex stands for every level from
// its own out to its parent's: see Placement.
func (t *Tree) addUsed(used, nodes []int) {
	previous := -1
	for _, n := range nodes {
		for v := t.leaves[n]; v > 0 && t.vertices[v].first > previous; v = t.vertices[v].parent {
			u := t.vertices[v]
			for l := t.vertices[u.parent].level + 1; l <= min(u.level, len(used)-1); l++ {
				used[l]++
			}
		}
		previous = n
	}
}
