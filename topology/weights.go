package topology

// usual is the weight of a level that gives none, and of single nodes: one edge.
const usual = 100

// MostWeight is the largest weight of a level: sums over any fleet stay exact.
const MostWeight = 1_000_000

// minor is the divisor of the weight of a boundary further in than the preferred level.
const minor = 16

// weights returns the gang's cost table: what an edge across a boundary of each level of the tree costs, nodes last.
// With a preferred level all weights are in sixteenths, so that those further in, which count a sixteenth, stay whole.
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
