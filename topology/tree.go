package topology

import (
	"cmp"
	"slices"
	"strings"
)

// Node is one machine as the tree sees it. Labels may hold more than the levels' keys; nothing else is read.
type Node struct {
	Name   string
	Labels map[string]string
}

// Domain is what nodes share at a level: the level and the label values from the outermost level down to it. A value is
// empty where the domain's nodes lack the label of a level above. The zero Domain is the whole fleet.
type Domain struct {
	Level Level
	Path  []string
}

// String joins the path with slashes, a dash standing for a missing label.
func (d Domain) String() string {
	if len(d.Path) == 0 {
		return "cluster"
	}
	values := slices.Clone(d.Path)
	for i, v := range values {
		values[i] = cmp.Or(v, "-")
	}
	return strings.Join(values, "/")
}

// Tree holds the nodes of a fleet by domain. It never changes once made and may be shared freely.
//
// Nodes are indexed in label-path order: the nodes of every domain are neighbors. Where a label is missing the node
// comes after its siblings that have it; an empty label value counts as missing.
type Tree struct {
	levels []Level
	names  []string
	byName map[string]int
	// vertices are the root, the domains and the nodes in depth-first order, parents first.
	vertices []vertex
	// leaves maps a node's index to its vertex.
	leaves []int
}

// vertex is the root (level -1), a domain (its level) or a node (level len(levels)). A level whose label is missing has
// no vertex: the parent of a vertex is the innermost domain around it, whatever its level.
type vertex struct {
	level  int
	value  string
	parent int
	// end is the first vertex after this one's descendants.
	end int
	// first and last delimit the nodes below: first ≤ node < last.
	first, last int
}

// pathedNode is a node on its way into the tree.
type pathedNode struct {
	name string
	path []string
}

// NewTree indexes nodes by the levels, outermost first. Node names should be unique: of several nodes with one name,
// Index finds the first in the tree.
func NewTree(levels []Level, nodes []Node) *Tree {
	sorted := sortByPath(levels, nodes)
	t := &Tree{
		levels:   slices.Clone(levels),
		names:    make([]string, len(nodes)),
		byName:   make(map[string]int, len(nodes)),
		vertices: make([]vertex, 1, 1+len(nodes)+len(nodes)/4),
		leaves:   make([]int, len(nodes)),
	}
	t.vertices[0] = vertex{level: -1, parent: -1}
	top := 0
	var previous []string
	for i, n := range sorted {
		shared := commonPrefix(previous, n.path)
		for t.vertices[top].level >= shared {
			top = t.close(top, i)
		}
		for l := shared; l < len(levels); l++ {
			if n.path[l] != "" {
				top = t.open(top, l, n.path[l], i)
			}
		}
		t.leaves[i] = t.open(top, len(levels), "", i)
		t.close(t.leaves[i], i+1)
		t.names[i] = n.name
		previous = n.path
	}
	for top >= 0 {
		top = t.close(top, len(nodes))
	}
	for i, name := range slices.Backward(t.names) {
		t.byName[name] = i
	}
	return t
}

func sortByPath(levels []Level, nodes []Node) []pathedNode {
	sorted := make([]pathedNode, len(nodes))
	values := make([]string, len(nodes)*len(levels))
	for i, n := range nodes {
		path := values[i*len(levels) : (i+1)*len(levels)]
		for l, level := range levels {
			path[l] = n.Labels[level.Key]
		}
		sorted[i] = pathedNode{n.Name, path}
	}
	slices.SortFunc(sorted, func(a, b pathedNode) int {
		return cmp.Or(slices.CompareFunc(a.path, b.path, compareValues), compareNatural(a.name, b.name))
	})
	return sorted
}

// compareValues orders label values naturally, with the missing one last.
func compareValues(a, b string) int {
	switch {
	case a == b:
		return 0
	case a == "":
		return 1
	case b == "":
		return -1
	}
	return compareNatural(a, b)
}

func commonPrefix(a, b []string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// open adds a vertex below the given one and returns its index.
func (t *Tree) open(parent, level int, value string, node int) int {
	t.vertices = append(t.vertices, vertex{level: level, value: value, parent: parent, first: node})
	return len(t.vertices) - 1
}

// close ends a vertex before the given node and returns its parent.
func (t *Tree) close(v, node int) int {
	t.vertices[v].last = node
	t.vertices[v].end = len(t.vertices)
	return t.vertices[v].parent
}

// Len returns the number of nodes.
func (t *Tree) Len() int { return len(t.names) }

// Levels returns the ladder, outermost first.
func (t *Tree) Levels() []Level { return slices.Clone(t.levels) }

// Node returns the name of the node with the given index.
func (t *Tree) Node(i int) string { return t.names[i] }

// Index returns the index of the named node.
func (t *Tree) Index(name string) (int, bool) {
	i, ok := t.byName[name]
	return i, ok
}

// Level returns the position in Levels of the level with the given name or, if no level is called so, label key.
func (t *Tree) Level(nameOrKey string) (int, bool) {
	if nameOrKey == "" {
		return 0, false
	}
	i := slices.IndexFunc(t.levels, func(l Level) bool { return l.Name == nameOrKey })
	if i < 0 {
		i = slices.IndexFunc(t.levels, func(l Level) bool { return l.Key == nameOrKey })
	}
	return max(i, 0), i >= 0
}

// Domain returns the domain of the node at the level; false if the node lacks the label, or there is no such node or
// level.
func (t *Tree) Domain(node, level int) (Domain, bool) {
	if node < 0 || node >= len(t.leaves) || level < 0 || level >= len(t.levels) {
		return Domain{}, false
	}
	v := t.ancestor(node, level)
	if t.vertices[v].level != level {
		return Domain{}, false
	}
	return t.domain(v), true
}

// Unlabelled returns the names of the nodes outside every domain of the level, in tree order.
func (t *Tree) Unlabelled(level int) []string {
	if level < 0 || level >= len(t.levels) {
		return nil
	}
	var names []string
	for i, name := range t.names {
		if t.vertices[t.ancestor(i, level)].level != level {
			names = append(names, name)
		}
	}
	return names
}

// ancestor returns the innermost vertex around the node whose level is the given one or further out.
func (t *Tree) ancestor(node, level int) int {
	v := t.leaves[node]
	for t.vertices[v].level > level {
		v = t.vertices[v].parent
	}
	return v
}

// domain returns the value of the root's or a domain's vertex.
func (t *Tree) domain(v int) Domain {
	level := t.vertices[v].level
	if level < 0 {
		return Domain{}
	}
	d := Domain{Level: t.levels[level], Path: make([]string, level+1)}
	for u := v; t.vertices[u].level >= 0; u = t.vertices[u].parent {
		d.Path[t.vertices[u].level] = t.vertices[u].value
	}
	return d
}
