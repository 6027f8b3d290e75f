package topology

import (
	"cmp"
	"slices"
)

// spot is members of one kind on one node.
type spot struct{ node, count int }

// packing is where the members of each kind went inside one vertex. missing members found no place; lacking is the
// first kind that misses some.
type packing struct {
	spots   [][]spot
	missing int
	lacking int
}

// pack puts the gang on the nodes below the vertex, as far as it goes. Kinds are packed one after another, the larger
// demand (fewer slots here) first, then, if that fails, in rank order; the better packing is returned.
func (a *ask) pack(v int) packing {
	order := make([]int, len(a.kinds))
	for i := range order {
		order[i] = i
	}
	byDemand := slices.Clone(order)
	slices.SortStableFunc(byDemand, func(i, j int) int {
		return cmp.Compare(a.kinds[i].slots[v], a.kinds[j].slots[v])
	})
	best := newPacker(a, v).pack(v, byDemand)
	if best.missing == 0 || slices.Equal(order, byDemand) {
		return best
	}
	if p := newPacker(a, v).pack(v, order); p.missing < best.missing {
		return p
	}
	return best
}

// packer packs kinds one after another: each sees what the ones before it left.
type packer struct {
	ask *ask
	// slots per kind and vertex, less what is taken. Vertex v is at v-base.
	slots [][]int
	base  int
	// touched vertices (again at v-base) hold members already: using them again costs no further domain. Nil for a
	// single kind.
	touched []bool
	// left is the capacity of the nodes that hold members.
	left map[int]Capacity
	// siblings are the children under consideration, kept for its memory only.
	siblings []int
	spots    []spot
}

// newPacker returns a packer for the vertices below the root. Several kinds need slots that it may change; one kind,
// the common case, reads those of the ask.
func newPacker(a *ask, root int) *packer {
	p := &packer{ask: a, slots: make([][]int, len(a.kinds))}
	for k := range a.kinds {
		p.slots[k] = a.kinds[k].slots
	}
	if len(a.kinds) == 1 {
		return p
	}
	end := a.tree.vertices[root].end
	for k, slots := range p.slots {
		p.slots[k] = slices.Clone(slots[root:end])
	}
	p.base = root
	p.touched = make([]bool, end-root)
	p.left = make(map[int]Capacity)
	return p
}

func (p *packer) pack(root int, order []int) packing {
	done := packing{spots: make([][]spot, len(order))}
	for i, k := range order {
		wanted := len(p.ask.kinds[k].ranks)
		placed := min(wanted, p.slots[k][root-p.base])
		if placed < wanted && done.missing == 0 {
			done.lacking = k
		}
		done.missing += wanted - placed
		p.spots = nil
		p.spread(k, root, placed)
		done.spots[k] = p.spots
		if i+1 < len(order) {
			p.take(k, root, order[i+1:])
		}
	}
	return done
}

// spread puts count members of the kind, for which there are slots, below the vertex: into the child that they fit
// best if one holds them all, else into the largest and the rest likewise. That uses the fewest children possible (P5).
func (p *packer) spread(k, v, count int) {
	slots := p.slots[k]
	switch count {
	case 0:
		return
	case slots[v-p.base]:
		p.fill(k, v)
		return
	}
	t := p.ask.tree
	u := t.vertices[v]
	if u.level == len(t.levels) {
		p.spots = append(p.spots, spot{u.first, count})
		return
	}
	p.siblings = p.siblings[:0]
	for c := v + 1; c < u.end; c = t.vertices[c].end {
		if slots[c-p.base] > 0 {
			p.siblings = append(p.siblings, c)
		}
	}
	next := p.bestFit(slots, 0, count)
	if next < 0 {
		slices.SortFunc(p.siblings, func(x, y int) int { return p.compare(slots, x, y) })
	}
	for from := 0; next < 0; from++ {
		largest := p.siblings[from]
		if slots[largest-p.base] >= count {
			next = p.bestFit(slots, from, count)
			break
		}
		p.fill(k, largest)
		count -= slots[largest-p.base]
	}
	p.spread(k, next, count)
}

// fill takes every slot of the kind below the vertex.
func (p *packer) fill(k, v int) {
	t := p.ask.tree
	for node := t.vertices[v].first; node < t.vertices[v].last; node++ {
		if n := p.slots[k][t.leaves[node]-p.base]; n > 0 {
			p.spots = append(p.spots, spot{node, n})
		}
	}
}

// bestFit returns the child among the siblings from the given one that holds count members and leaves the fewest slots,
// -1 if none does. Touched children come first.
func (p *packer) bestFit(slots []int, from, count int) int {
	best := -1
	for _, c := range p.siblings[from:] {
		if slots[c-p.base] >= count && (best < 0 || p.tighter(slots, c, best)) {
			best = c
		}
	}
	return best
}

// tighter orders children that hold all of the rest: touched ones, then those with fewer slots, then by path.
func (p *packer) tighter(slots []int, x, y int) bool {
	return cmp.Or(p.untouched(x)-p.untouched(y), slots[x-p.base]-slots[y-p.base], x-y) < 0
}

// compare orders children by how soon they are filled: touched ones, then those with more slots, then by path.
func (p *packer) compare(slots []int, x, y int) int {
	return cmp.Or(p.untouched(x)-p.untouched(y), slots[y-p.base]-slots[x-p.base], x-y)
}

// untouched is 0 for a vertex that already holds members of the gang, else 1.
func (p *packer) untouched(v int) int {
	if p.touched != nil && p.touched[v-p.base] {
		return 0
	}
	return 1
}

// take removes what the last spread used from the slots of the kinds still to come.
func (p *packer) take(k, root int, later []int) {
	t := p.ask.tree
	for _, s := range p.spots {
		left, ok := p.left[s.node]
		if !ok {
			left = p.ask.free[s.node]
		}
		left = left.less(p.ask.kinds[k].shape.Demand, s.count)
		p.left[s.node] = left
		leaf := t.leaves[s.node]
		for v := leaf; v >= root; v = t.vertices[v].parent {
			p.touched[v-p.base] = true
		}
		for _, l := range later {
			slots := p.slots[l]
			gone := slots[leaf-p.base] - min(slots[leaf-p.base], p.ask.kinds[l].room(left))
			for v := leaf; v >= root; v = t.vertices[v].parent {
				slots[v-p.base] -= gone
			}
		}
	}
}
