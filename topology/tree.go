package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Node is one machine as the tree sees it. Labels may hold more than the levels' keys; nothing else is read.
type Node struct {
	Name   string
	Labels map[string]string
}

// Domain identifies nodes that share a level: the level and the label values from the outermost level down to it. A
// value is empty where the domain's nodes lack the label of a level above. The zero Domain is the whole fleet.
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

// Tree holds the nodes of a fleet by domain. It never changes and may be shared freely: With and Without return another
// tree, which shares nearly everything with the first.
//
// NewTree numbers the nodes in label-path order, missing labels (empty values too) after present ones. The number of a
// node stays the same in all trees made from the first; that of a removed node is given to the next node that is added.
type Tree struct {
	levels []Level
	root   *branch
	roster roster
	// once makes layouts when they are first needed: one pass over the nodes.
	once    sync.Once
	layouts layouts
	// toriOnce makes the tori when a gang first asks for a box.
	toriOnce sync.Once
	allTori  []*torus
	// ranks are those of the largest gang of one shape so far, shared by questions and never written.
	ranks atomic.Pointer[[]int]
}

// NewTree indexes nodes by the levels, outermost first. Levels with one key or name and nodes with one name are
// ErrDuplicate, a weight out of its range is ErrWeight.
func NewTree(levels []Level, nodes []Node) (*Tree, error) {
	t := &Tree{levels: slices.Clone(levels)}
	for i, l := range levels {
		same := func(o Level) bool { return o.Key == l.Key || o.Name != "" && o.Name == l.Name }
		if slices.ContainsFunc(levels[:i], same) {
			return nil, &InputError{Of: "tree", What: "level " + l.label(), Cause: ErrDuplicate}
		}
		if l.Weight < 0 || l.Weight > MostWeight {
			return nil, &InputError{
				Of: "tree", What: fmt.Sprintf("weight %d of level %s", l.Weight, l.label()), Cause: ErrWeight,
			}
		}
	}
	entries := make([]entry, len(nodes))
	values := make([]string, len(nodes)*len(levels))
	for i, n := range nodes {
		path := values[i*len(levels) : (i+1)*len(levels) : (i+1)*len(levels)]
		for l, level := range levels {
			path[l] = strings.Clone(level.Value(n.Labels))
		}
		entries[i] = entry{n.Name, path, torusText(n.Labels)}
	}
	slices.SortFunc(entries, comparePaths)
	t.root = grow(entries, nil, len(levels))
	var twin string
	if t.roster, twin = newRoster(entries); twin != "" {
		return nil, &InputError{Of: "tree", What: "node " + twin, Cause: ErrDuplicate}
	}
	return t, nil
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
	return CompareNatural(a, b)
}

// With returns a tree in which the node has these labels, whether it was there before or not. It costs a copy of the
// domains on the node's path; the next decision passes over all nodes once.
func (t *Tree) With(n Node) *Tree {
	path := make([]string, len(t.levels))
	for l, level := range t.levels {
		path[l] = level.Value(n.Labels)
	}
	changed := &Tree{levels: t.levels, root: t.root, roster: t.roster}
	i, known := t.roster.index(n.Name)
	if known {
		old := t.roster.entry(i)
		if slices.Equal(old.path, path) && old.torusText == torusText(n.Labels) {
			return t
		}
		changed.root = changed.root.without(old)
	}
	e := entry{n.Name, path, torusText(n.Labels)}
	if known {
		changed.roster = changed.roster.set(i, e)
	} else {
		i, changed.roster = changed.roster.add(e)
	}
	changed.root = changed.root.with(e, i)
	return changed
}

// Without returns a tree without the named node; the same tree if there is no such node.
func (t *Tree) Without(name string) *Tree {
	i, ok := t.roster.index(name)
	if !ok {
		return t
	}
	return &Tree{
		levels: t.levels,
		root:   t.root.without(t.roster.entry(i)),
		roster: t.roster.remove(i),
	}
}

// Len returns the number of node numbers: the nodes, and the numbers of removed nodes that were not reused.
func (t *Tree) Len() int { return t.roster.len }

// Levels returns the ladder, outermost first.
func (t *Tree) Levels() []Level { return slices.Clone(t.levels) }

// Node returns the name of the node with the given number, "" if there is none.
func (t *Tree) Node(i int) string {
	if i < 0 || i >= t.roster.len {
		return ""
	}
	return t.roster.entry(i).name
}

// Index returns the number of the named node.
func (t *Tree) Index(name string) (int, bool) { return t.roster.index(name) }

// Level returns the position in Levels of the level with the given name or, if no level is called so, label key. For
// LevelNode that is the number of levels.
func (t *Tree) Level(nameOrKey string) (int, bool) {
	if nameOrKey == "" {
		return 0, false
	}
	i := slices.IndexFunc(t.levels, func(l Level) bool { return l.Name == nameOrKey })
	if i < 0 {
		i = slices.IndexFunc(t.levels, func(l Level) bool { return l.Key == nameOrKey })
	}
	if i < 0 && (nameOrKey == LevelNode || nameOrKey == labelHostname) {
		i = len(t.levels)
	}
	return max(i, 0), i >= 0
}

// Domain returns the domain of the node at the level, the number of levels standing for the node itself; false if the
// node lacks the label, or there is no such node or level.
func (t *Tree) Domain(node, level int) (Domain, bool) {
	name := t.Node(node)
	if level < 0 || level > len(t.levels) || name == "" {
		return Domain{}, false
	}
	if level == len(t.levels) {
		return Domain{
			Level: Level{
				Name: LevelNode,
				Key:  labelHostname,
			},
			Path: append(slices.Clone(t.roster.entry(node).path), name),
		}, true
	}
	lay := t.layout().holding(level)
	at := lay.position(level)
	v := lay.ancestor(node, at)
	if lay.vertices[v].level != at {
		return Domain{}, false
	}
	return lay.domain(v), true
}

// Together returns the nodes that share the node's domain of the level, itself included, in tree order; nil if it lacks
// the label, or there is no such node or level.
func (t *Tree) Together(node, level int) []int {
	if _, ok := t.Domain(node, level); !ok {
		return nil
	}
	group := t.layout().groups[level]
	var nodes []int
	for _, other := range t.layout().first().nodes {
		if group[other] == group[node] {
			nodes = append(nodes, other)
		}
	}
	return nodes
}

// nodeLevel is the level of single nodes.
func nodeLevel() Level { return Level{Name: LevelNode, Key: labelHostname} }

// Unlabelled returns the names of the nodes outside every domain of the level, in tree order.
func (t *Tree) Unlabelled(level int) []string {
	if level < 0 || level >= len(t.levels) {
		return nil
	}
	var names []string
	for _, node := range t.layout().first().nodes {
		if e := t.roster.entry(node); e.path[level] == "" {
			names = append(names, e.name)
		}
	}
	return names
}

// Nested reports whether every accelerator domain lies inside one domain of the network levels before it. If not, costs
// over both are bounded instead of exact.
func (t *Tree) Nested() bool { return !t.layout().crossed() }

// layout returns the tree's nodes as arrays, made on first use.
func (t *Tree) layout() *layouts {
	t.once.Do(func() { t.layouts = newLayouts(t) })
	return &t.layouts
}
