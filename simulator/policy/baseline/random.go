package baseline

import (
	"hash/fnv"
	"math/rand/v2"

	"github.com/lockstep-project/lockstep/topology"
)

// random puts each pod, in rank order, on a node that has room, all such nodes being equally likely. The draw depends
// on the seed and the gang's name only, so a gang that is evaluated twice is answered alike.
type random struct {
	seed  uint64
	fleet fleet
}

// Place implements Policy.
func (p *random) Place(l topology.Ledger, gang topology.Gang) ([]int, bool) {
	name := fnv.New64a()
	_, _ = name.Write([]byte(gang.Name))
	chance := rand.New(rand.NewPCG(p.seed, name.Sum64()))
	d := newDraft(l, gang)
	feasible := make([][]int, len(gang.Shapes))
	for rank, m := range gang.Members {
		if d.nodes[rank] != none {
			continue
		}
		if feasible[m.Shape] == nil {
			feasible[m.Shape] = d.feasible(m.Shape, p.fleet.of(l.Tree))
		}
		node := d.draw(m.Shape, &feasible[m.Shape], chance)
		if node == none {
			return nil, false
		}
		d.put(rank, node)
	}
	return d.nodes, true
}

// feasible are the nodes that have room for one.
func (d *draft) feasible(shape int, nodes []int) []int {
	fit := make([]int, 0, len(nodes))
	for _, node := range nodes {
		if d.room(shape, node, 1) > 0 {
			fit = append(fit, node)
		}
	}
	return fit
}

// draw takes one of the nodes. Those that are full by now are drawn again and forgotten, which leaves the others
// equally likely.
func (d *draft) draw(shape int, nodes *[]int, chance *rand.Rand) int {
	for n := len(*nodes); n > 0; n = len(*nodes) {
		at := chance.IntN(n)
		if node := (*nodes)[at]; d.room(shape, node, 1) > 0 {
			return node
		}
		(*nodes)[at] = (*nodes)[n-1]
		*nodes = (*nodes)[:n-1]
	}
	return none
}
