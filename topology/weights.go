package topology

// usual is the weight of a level that gives none, and of single nodes: one edge.
const usual = 100

// MostWeight is the largest weight of a level: sums over any fleet stay exact.
const MostWeight = 1_000_000

// minor is the divisor of the weight of a boundary further in than the preferred level.
const minor = 16

// weights returns the gang's cost table: what an edge across a boundary of each level of the tree costs, nodes last. With
// a preferred level all weights are in sixteenths, so that those further in, which count a sixteenth, stay whole.
func (a *ask) weights() []int64 {
	table := make([]int64, len(a.ledger.Tree.levels)+1)
	for i := range table {
		table[i] = a.weight(i)
	}
	return table
}

// weight is that of one level.
func (a *ask) weight(level int) int64 {
	levels, weight := a.ledger.Tree.levels, int64(usual)
	if level < len(levels) && levels[level].Weight != 0 {
		weight = levels[level].Weight
	}
	if a.rules.preferred >= 0 && level <= a.rules.preferred {
		weight *= minor
	}
	return weight
}

// edges counts the edges of a pattern between the ranks, which are at these places.
func (c Communication) edges(at []int32) int64 {
	switch c {
	case AllToAll:
		return pairs(at)
	case Chain:
		return steps(at)
	case Ring:
		if n := len(at); n > 1 && at[0] != at[n-1] {
			return steps(at) + 1
		}
	}
	return steps(at)
}

// steps counts the neighbors that are at different places.
func steps(at []int32) int64 {
	n := int64(0)
	for i := 1; i < len(at); i++ {
		if at[i] != at[i-1] {
			n++
		}
	}
	return n
}

// pairs counts the pairs that are at different places: all pairs less those that share one.
func pairs(at []int32) int64 {
	members := make(map[int32]int64)
	for _, place := range at {
		members[place]++
	}
	n := int64(len(at))
	crossing := n * n
	for _, s := range members {
		crossing -= s * s
	}
	return crossing / 2
}

// fewest is the least number of edges that cross a level when n members use that many domains of it.
func (c Communication) fewest(domains, n int) int64 {
	switch {
	case domains < 2:
		return 0
	case c == Chain:
		return int64(domains - 1)
	case c == AllToAll:
		return int64(n - 1)
	}
	return int64(domains)
}
