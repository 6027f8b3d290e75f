package baseline

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/topology"
)

// flavor is the nodes that have the same levels, as Kueue's snapshot of a topology has them.
type flavor struct {
	// levels are those of the tree that the nodes have, outermost first, and that of nodes last.
	levels  []int
	domains []domain
	// byLevel are the domains of each of the flavor's levels, by label values.
	byLevel [][]int
}

// domain is a domain of a level; those of the innermost level are nodes.
type domain struct {
	// parent is -1 at the outermost level, node -1 everywhere but at the innermost.
	parent, node int
	kids         []int
	// order is its place among the domains of its level by label values.
	order int
	// pods and slices are the numbers that it has room for, and then those that it gets.
	pods, slices int
}

// flavors groups the nodes of a tree: those with most levels first, then those that have the outer ones.
func flavors(tree *topology.Tree) []flavor {
	var all []flavor
	leaves := make(map[string][]leaf)
	var nodes fleet
	depth := len(tree.Levels())
	for _, node := range nodes.of(tree) {
		d, _ := tree.Domain(node, depth)
		f, values := split(d.Path)
		if key := f.key(); leaves[key] == nil {
			all = append(all, f)
			leaves[key] = []leaf{{node, values}}
		} else {
			leaves[key] = append(leaves[key], leaf{node, values})
		}
	}
	slices.SortFunc(all, func(a, b flavor) int {
		return cmp.Or(cmp.Compare(len(b.levels), len(a.levels)), slices.Compare(a.levels, b.levels))
	})
	for i := range all {
		all[i].grow(leaves[all[i].key()])
	}
	return all
}

// leaf is a node with the values of its flavor's levels, its name last.
type leaf struct {
	node   int
	values []string
}

// split returns the levels that a node has, and their values.
func split(path []string) (flavor, []string) {
	var f flavor
	var values []string
	for level, value := range path {
		if value != "" {
			f.levels, values = append(f.levels, level), append(values, value)
		}
	}
	return f, values
}

// key identifies a flavor.
func (f *flavor) key() string {
	var b strings.Builder
	for _, level := range f.levels {
		b.WriteRune(rune(level))
	}
	return b.String()
}

// grow makes the domains. Label values are compared byte by byte, as Kueue does: r10 precedes r9.
func (f *flavor) grow(leaves []leaf) {
	slices.SortFunc(leaves, func(a, b leaf) int { return slices.Compare(a.values, b.values) })
	f.byLevel = make([][]int, len(f.levels))
	path := make([]int, len(f.levels))
	var last []string
	for _, l := range leaves {
		level := 0
		for level < len(last) && last[level] == l.values[level] {
			level++
		}
		for ; level < len(f.levels); level++ {
			d := domain{parent: none, node: none, order: len(f.byLevel[level])}
			if level > 0 {
				d.parent = path[level-1]
			}
			if level == len(f.levels)-1 {
				d.node = l.node
			}
			path[level] = len(f.domains)
			f.domains = append(f.domains, d)
			f.byLevel[level] = append(f.byLevel[level], path[level])
			if d.parent != none {
				f.domains[d.parent].kids = append(f.domains[d.parent].kids, path[level])
			}
		}
		last = l.values
	}
}

// position returns the flavor's index of a level, given by name or label key; false if it has none.
func (f *flavor) position(tree *topology.Tree, nameOrKey string) (int, bool) {
	level, known := tree.Level(nameOrKey)
	if !known {
		return 0, false
	}
	at := slices.Index(f.levels, level)
	return max(at, 0), at >= 0
}
