package measure

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// domains holds the domain of every node at each level. It is built from the tree's answers about single nodes, not
// from the arrays on which placements are decided: a checker must not rely on the data of the component that it checks.
type domains struct {
	levels []topology.Level
	// of[l][n] is the domain of node n at level l of the tree, and, after the last level, the node itself: numbers from
	// 0 on. A node without the level's label counts with its domain of the next level further in.
	of [][]int32
	// labeled[l][n] says that the node has the level's label.
	labeled [][]bool
	// counts is the number of domains of each level.
	counts []int
	// seen is the last question in which a domain was seen, for counting without clearing.
	seen   [][]int32
	asking int32
}

func newDomains(tree *topology.Tree) *domains {
	d := &domains{levels: tree.Levels()}
	n, levels := tree.Len(), len(d.levels)
	d.of, d.labeled = make([][]int32, levels+1), make([][]bool, levels+1)
	d.counts, d.seen = make([]int, levels+1), make([][]int32, levels+1)
	names := make([]map[string]int32, levels+1)
	for l := range d.of {
		d.of[l], d.labeled[l], names[l] = make([]int32, n), make([]bool, n), make(map[string]int32)
	}
	for node := range n {
		name := ""
		for l := levels; l >= 0; l-- {
			if domain, ok := tree.Domain(node, l); ok {
				name, d.labeled[l][node] = domain.Level.Key+"\x00"+domain.String(), true
			}
			number, known := names[l][name]
			if !known {
				number = int32(len(names[l]))
				names[l][name] = number
			}
			d.of[l][node] = number
		}
	}
	for l := range d.of {
		d.counts[l] = len(names[l])
		d.seen[l] = make([]int32, d.counts[l])
	}
	return d
}

// closest is the level for which splits are counted: that of the NVLink domains, the innermost of several, or, without
// any, the innermost of all; -1 if the tree has no level but that of nodes.
func (d *domains) closest() int {
	for l, level := range slices.Backward(d.levels) {
		if level.Accelerator {
			return l
		}
	}
	return len(d.levels) - 1
}

// used counts the domains of a level that the nodes are in.
func (d *domains) used(level int, nodes []int) int {
	d.asking++
	n := 0
	for _, node := range nodes {
		if at := d.of[level][node]; d.seen[level][at] != d.asking {
			d.seen[level][at] = d.asking
			n++
		}
	}
	return n
}

// together reports whether the nodes are in one domain of the level, and known to be.
func (d *domains) together(level int, nodes []int) bool {
	for _, node := range nodes {
		if !d.labeled[level][node] || d.of[level][node] != d.of[level][nodes[0]] {
			return false
		}
	}
	return true
}
