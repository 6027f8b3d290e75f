package topology

import "slices"

// The bounds of improve's time.
const (
	// mostSwapped is the largest number of members of a kind for which all pairs are compared.
	mostSwapped = 256
	// mostRounds is the largest number of rounds over the pairs of a kind.
	mostRounds = 8
)

// improve lets members of one kind trade places while that makes a ring or a chain cheaper. Fresh gangs of one kind
// have the best order already; where ranks are given (members that run, a launcher) this finds a good one. Ranks 0 and
// 2 run in rack r1, rank 3 in r2, and 1 and 4 found r2 and r1: the ring r1, r2, r1, r2, r1 crosses four times. With 1
// and 4 swapped the first three are in r1, and it crosses twice.
func (a *ask) improve(nodes []int, weights []int64) {
	if a.gang.Communication == AllToAll {
		return
	}
	e := edges{a, nodes, a.ledger.Tree.layout().groups, weights}
	for _, k := range a.kinds {
		if len(k.ranks) > mostSwapped {
			continue
		}
		for range mostRounds {
			if !e.round(k.ranks) {
				break
			}
		}
	}
}

// edges measures a ring or a chain on given nodes.
type edges struct {
	*ask
	nodes   []int
	groups  [][]int32
	weights []int64
}

// round swaps every pair once that is better swapped, and reports whether there was one.
func (e edges) round(ranks []int) bool {
	better := false
	for i, x := range ranks {
		for _, y := range ranks[i+1:] {
			if e.nodes[x] == e.nodes[y] || !e.mayTrade(x, y) {
				continue
			}
			before := e.around(x, y)
			e.nodes[x], e.nodes[y] = e.nodes[y], e.nodes[x]
			if e.around(x, y) < before {
				better = true
				continue
			}
			e.nodes[x], e.nodes[y] = e.nodes[y], e.nodes[x]
		}
	}
	return better
}

// mayTrade reports whether two members can trade places without leaving their segments' domains.
func (e edges) mayTrade(x, y int) bool {
	return e.rules.segment < 0 || e.groups[e.rules.segment][e.nodes[x]] == e.groups[e.rules.segment][e.nodes[y]]
}

// around is the cost of the edges at two ranks, each counted once.
func (e edges) around(x, y int) int64 {
	n := len(e.nodes)
	at := []int{x - 1, x, y - 1, y} // edge i joins rank i and the next
	cost := int64(0)
	for i, edge := range at {
		edge = (edge + n) % n
		if slices.Contains(at[:i], edge) || edge == n-1 && e.gang.Communication == Chain {
			continue
		}
		cost += e.edge(e.nodes[edge], e.nodes[(edge+1)%n])
	}
	return cost
}

// edge is the cost of an edge between two nodes.
func (e edges) edge(a, b int) int64 {
	cost := int64(0)
	for l, group := range e.groups {
		if group[a] != group[b] {
			cost += e.weights[l]
		}
	}
	return cost
}
