package measure

import "github.com/lockstep-project/lockstep/topology"

// The cost of a placement is that of the decision core: over all levels, the level's weight times the edges of the
// gang's communication that cross its boundaries, in hundredths of an edge between two nodes. A test holds the two
// equal.
const (
	edge  = 100 // the weight of a level that gives none, and of single nodes
	minor = 16  // the divisor of the weight of a boundary further in than the preferred level
)

// price is the cost of a placement.
type price struct {
	cost int64
	// unit is one edge between two nodes in the same measure.
	unit int64
	// inversions are boundaries that a ring or a chain crosses more often than its domains make it.
	inversions int
}

// price prices members on these nodes, by rank, and counts the domains of each level.
func (d *domains) price(g *topology.Gang, nodes []int) (price, []int32) {
	preferred, p := d.level(g.Preferred), price{}
	used, at := make([]int32, len(d.of)), make([]int32, len(nodes))
	for l, of := range d.of {
		weight := int64(edge)
		if l < len(d.levels) && d.levels[l].Weight != 0 {
			weight = d.levels[l].Weight
		}
		if preferred >= 0 && l <= preferred {
			weight *= minor
		}
		p.unit = weight // in the end that of nodes
		for i, node := range nodes {
			at[i] = of[node]
		}
		used[l] = int32(d.used(l, nodes))
		crossed := edges(g.Communication, at)
		p.cost += weight * crossed
		p.inversions += int(crossed - fewest(g.Communication, int64(used[l]), crossed))
	}
	return p, used
}

// edges counts the edges of a pattern between ranks at these places.
func edges(c topology.Communication, at []int32) int64 {
	if c == topology.AllToAll {
		members := make(map[int32]int64)
		for _, place := range at {
			members[place]++
		}
		n := int64(len(at))
		crossing := n * n
		for _, size := range members {
			crossing -= size * size
		}
		return crossing / 2
	}
	n := int64(0)
	for i := 1; i < len(at); i++ {
		if at[i] != at[i-1] {
			n++
		}
	}
	if c == topology.Ring && len(at) > 1 && at[0] != at[len(at)-1] {
		n++
	}
	return n
}

// fewest returns the least number of edges that cross the boundaries of as many domains, whatever the order of the
// ranks; where all ranks talk to all the order does not matter.
func fewest(c topology.Communication, domains, crossed int64) int64 {
	switch {
	case c == topology.AllToAll:
		return crossed
	case domains < 2:
		return 0
	case c == topology.Chain:
		return domains - 1
	}
	return domains
}
