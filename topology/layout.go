package topology

import (
	"slices"
	"strings"
)

// layout is a tree as arrays, for decisions: the root, the domains and the nodes in depth-first order, parents first.
// Levels are positions in the ladder, the root being -1 and nodes len(ladder).
type layout struct {
	tree *Tree
	// ladder are the tree's levels by position, outermost first.
	ladder   []int
	vertices []vertex
	// nodes are the numbers of the nodes in depth-first order; leaves maps a number to its vertex, -1 if it is vacant.
	nodes  []int
	leaves []int
}

type vertex struct {
	level  int
	value  string
	parent int
	// end is the first vertex after this one's descendants.
	end int
	// first and last delimit the nodes below, as positions in layout.nodes.
	first, last int
}

// layouts are the orders of a tree's levels: one, or two if accelerator domains cross the domains of the network. Then
// the first has whole network domains (and cut accelerator domains), the second whole accelerator domains.
type layouts struct {
	all []layout
	// groups[level][node] is the node's group at a level of the tree, or as a node: its domain, or a node that counts
	// as one (see Use).
	groups [][]int32
	// ordinals[level][position] counts the groups of a level up to a position of the only layout; nil if there are two.
	ordinals [][]int32
	// numbers is more than any group.
	numbers int
}

// stretch is the nodes at consecutive positions of a layout, the last one excluded.
type stretch struct{ first, last int32 }

func newLayouts(t *Tree) layouts {
	ladder := make([]int, len(t.levels))
	for i := range ladder {
		ladder[i] = i
	}
	root := t.root
	if root == nil {
		root = &branch{level: -1, node: -1}
	}
	ls := layouts{all: []layout{flatten(t, ladder, root)}}
	if first := &ls.all[0]; first.cutsAccelerators() {
		slices.SortStableFunc(ladder, func(a, b int) int { return t.networkFirst(b) - t.networkFirst(a) })
		ls.all = append(ls.all, flatten(t, ladder, first.regrow(ladder)))
	}
	ls.group()
	ls.numbers = t.Len()
	for _, lay := range ls.all {
		ls.numbers += len(lay.vertices)
	}
	return ls
}

// networkFirst is 0 for network levels, 1 for accelerator levels.
func (t *Tree) networkFirst(level int) int {
	if t.levels[level].Accelerator {
		return 1
	}
	return 0
}

func flatten(t *Tree, ladder []int, root *branch) layout {
	lay := layout{
		tree: t, ladder: slices.Clone(ladder), leaves: make([]int, t.Len()), nodes: make([]int, 0, t.Len()),
		vertices: make([]vertex, 0, 1+t.Len()+t.Len()/4),
	}
	for i := range lay.leaves {
		lay.leaves[i] = -1
	}
	lay.add(root, -1)
	return lay
}

func (lay *layout) add(b *branch, parent int) {
	v := len(lay.vertices)
	lay.vertices = append(lay.vertices, vertex{level: b.level, value: b.value, parent: parent, first: len(lay.nodes)})
	if b.node >= 0 {
		lay.leaves[b.node] = v
		lay.nodes = append(lay.nodes, b.node)
	}
	for _, kid := range b.kids {
		lay.add(kid, v)
	}
	lay.vertices[v].last = len(lay.nodes)
	lay.vertices[v].end = len(lay.vertices)
}

// cutsAccelerators reports whether an accelerator domain has nodes in several domains of the network.
func (lay *layout) cutsAccelerators() bool {
	seen := make(map[string]bool)
	for v, u := range lay.vertices {
		if u.level < 0 || u.level >= len(lay.ladder) || !lay.tree.levels[u.level].Accelerator {
			continue
		}
		var key strings.Builder
		for w := v; lay.vertices[w].level >= 0; w = lay.vertices[w].parent {
			if l := lay.vertices[w].level; lay.tree.levels[l].Accelerator {
				key.WriteString(lay.tree.levels[l].Key + "\x00" + lay.vertices[w].value + "\x00")
			}
		}
		if seen[key.String()] {
			return true
		}
		seen[key.String()] = true
	}
	return false
}

// regrow makes the branches for another order of the levels.
func (lay *layout) regrow(ladder []int) *branch {
	turned := make([]entry, lay.tree.Len())
	for _, node := range lay.nodes {
		e := lay.tree.roster.entry(node)
		turned[node] = entry{name: e.name, path: make([]string, len(ladder))}
		for at, level := range ladder {
			turned[node].path[at] = e.path[level]
		}
	}
	numbers := slices.Clone(lay.nodes)
	slices.SortFunc(numbers, func(a, b int) int { return comparePaths(turned[a], turned[b]) })
	entries := make([]entry, len(numbers))
	for i, node := range numbers {
		entries[i] = turned[node]
	}
	return grow(entries, numbers, len(ladder))
}

// group fills groups.
func (ls *layouts) group() {
	first := &ls.all[0]
	n, levels := first.tree.Len(), len(first.ladder)
	flat := make([]int32, n*(levels+1))
	ls.groups = make([][]int32, levels+1)
	for l := range ls.groups {
		ls.groups[l] = flat[l*n : (l+1)*n : (l+1)*n]
	}
	for node := range n {
		ls.groups[levels][node] = int32(node)
	}
	first.eachSpan(func(v, level int, nodes []int) {
		for _, node := range nodes {
			ls.groups[level][node] = int32(v)
		}
	})
	if ls.crossed() {
		ls.groupAccelerators()
		return
	}
	ls.number()
}

// number fills ordinals.
func (ls *layouts) number() {
	first := ls.first()
	ls.ordinals = make([][]int32, len(first.ladder))
	for l, group := range ls.groups[:len(first.ladder)] {
		ordinals, n, before := make([]int32, len(first.nodes)), int32(0), int32(-1)
		for position, node := range first.nodes {
			if g := group[node]; g != before {
				n, before = n+1, g
			}
			ordinals[position] = n
		}
		ls.ordinals[l] = ordinals
	}
}

// countIn returns the number of groups of a level, or of nodes, that have nodes in ascending stretches. Racks of two
// nodes number their positions 1 1 2 2 3 3: stretches 0-1 and 3-6 are in racks 1, 2 and 3, and 0-1 and 1-2 in one.
func (ls *layouts) countIn(level int, of []stretch) int {
	n, before := 0, int32(0)
	for _, s := range of {
		if level == len(ls.ordinals) {
			n += int(s.last - s.first)
			continue
		}
		first, last := ls.ordinals[level][s.first], ls.ordinals[level][s.last-1]
		n += int(last - first)
		if first != before {
			n++
		}
		before = last
	}
	return n
}

// eachSpan yields every vertex with the levels that it stands for, from its own out to its parent's.
func (lay *layout) eachSpan(yield func(v, level int, nodes []int)) {
	for v := 1; v < len(lay.vertices); v++ {
		u := lay.vertices[v]
		for l := lay.vertices[u.parent].level + 1; l <= min(u.level, len(lay.ladder)-1); l++ {
			yield(v, l, lay.nodes[u.first:u.last])
		}
	}
}

// groupAccelerators replaces the cut accelerator domains by whole ones.
func (ls *layouts) groupAccelerators() {
	first, second := &ls.all[0], &ls.all[1]
	after := int32(len(first.vertices)) // groups of the second layout are numbered after those of the first
	levels := first.tree.levels
	whole := make(map[[2]int]int32) // accelerator level and node → domain
	second.eachSpan(func(v, at int, nodes []int) {
		level := second.ladder[at]
		if !levels[level].Accelerator {
			return
		}
		domain := second.vertices[v].level < len(levels) && levels[second.ladder[second.vertices[v].level]].Accelerator
		for _, node := range nodes {
			g := after + int32(v)
			if !domain {
				g = int32(first.leaves[node])
			}
			ls.groups[level][node] = g
			if domain && second.vertices[v].level == at {
				whole[[2]int{level, node}] = g
			}
		}
	})
	first.eachSpan(func(v, level int, nodes []int) {
		inner := first.vertices[v].level
		if levels[level].Accelerator || inner >= len(levels) || !levels[inner].Accelerator {
			return
		}
		for _, node := range nodes { // no label at this level of the network: the accelerator domain counts
			ls.groups[level][node] = whole[[2]int{inner, node}]
		}
	})
}

func (ls *layouts) first() *layout { return &ls.all[0] }

// crossed reports whether accelerator domains cross the network's.
func (ls *layouts) crossed() bool { return len(ls.all) > 1 }

// holding returns the layout in which the domains of the tree's level are whole.
func (ls *layouts) holding(level int) *layout {
	if ls.crossed() && level >= 0 && level < len(ls.first().ladder) && ls.first().tree.levels[level].Accelerator {
		return &ls.all[1]
	}
	return ls.first()
}

// position returns the index of the tree's level on the layout's ladder; nodes are last.
func (lay *layout) position(level int) int {
	if level < 0 || level >= len(lay.ladder) {
		return level
	}
	return slices.Index(lay.ladder, level)
}

// noLevel is a position that no vertex has.
const noLevel = -2

// ruled is position for a level that may be none.
func (lay *layout) ruled(level int) int {
	if level < 0 {
		return noLevel
	}
	return lay.position(level)
}

// ancestor returns the innermost vertex around the node whose level is the given one or further out.
func (lay *layout) ancestor(node, level int) int {
	v := lay.leaves[node]
	for lay.vertices[v].level > level {
		v = lay.vertices[v].parent
	}
	return v
}

// around returns the innermost domain (or the root) that holds all the nodes.
func (lay *layout) around(nodes []int) int {
	if len(nodes) == 0 {
		return 0
	}
	v := lay.vertices[lay.leaves[nodes[0]]].parent
	end := lay.vertices[v].end
	for _, n := range nodes {
		for leaf := lay.leaves[n]; leaf < v || leaf >= end; end = lay.vertices[v].end {
			v = lay.vertices[v].parent
		}
		if v == 0 {
			break // the root holds the others, too
		}
	}
	return v
}

// domain returns the value of the root's, a domain's or a node's vertex.
func (lay *layout) domain(v int) Domain {
	at := lay.vertices[v].level
	if at < 0 {
		return Domain{}
	}
	d := Domain{Level: nodeLevel(), Path: make([]string, at+1)}
	if at < len(lay.ladder) {
		d.Level = lay.tree.levels[lay.ladder[at]]
	}
	for u := v; lay.vertices[u].level >= 0; u = lay.vertices[u].parent {
		d.Path[lay.vertices[u].level] = lay.vertices[u].value
	}
	return d
}
