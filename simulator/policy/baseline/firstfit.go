package baseline

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// firstFit puts each pod, in rank order, on the first node that has room, by name: digits in names count as numbers, as
// people number nodes. It knows no topology.
type firstFit struct {
	tree   *topology.Tree
	byName []int
}

// Place implements Policy.
func (p *firstFit) Place(l topology.Ledger, gang topology.Gang) ([]int, bool) {
	d := newDraft(l, gang)
	order := p.order(l.Tree)
	// Room only shrinks while the gang is placed, so a node that is full for a shape stays so.
	next := make([]int, len(gang.Shapes))
	for rank, m := range gang.Members {
		if d.nodes[rank] != none {
			continue
		}
		at := next[m.Shape]
		for at < len(order) && d.room(m.Shape, order[at], 1) == 0 {
			at++
		}
		if next[m.Shape] = at; at == len(order) {
			return nil, false
		}
		d.put(rank, order[at])
	}
	return d.nodes, true
}

func (p *firstFit) order(tree *topology.Tree) []int {
	if p.tree != tree {
		var f fleet
		p.tree, p.byName = tree, slices.Clone(f.of(tree))
		slices.SortStableFunc(p.byName, func(a, b int) int {
			return topology.CompareNatural(tree.Node(a), tree.Node(b))
		})
	}
	return p.byName
}
