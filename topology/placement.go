package topology

// Placement is the answer yes.
type Placement struct {
	Gang string
	// Nodes[i] is the tree index of the node for Members[i], placed members included. An elastic gang may have fewer
	// nodes than members.
	Nodes []int
	// Within is the smallest domain that holds all of them; the zero Domain if only the whole fleet does.
	Within Domain
	// Levels lists the domains that the placement uses at each level of the tree and, last, its single nodes.
	Levels []Use
	// Cost is the sum of the levels' costs, Bound a proven lower bound of the cost of any placement of these members.
	Cost, Bound int64
}

// Use holds the domains that a placement uses at one level. A node that lacks the level's label counts with its domain
// of the next level further in, or by itself if there is none: domains that are not known to be shared are not.
type Use struct {
	// Domains is the number of domains used, Least the fewest that the free capacity of the level's domains allows if
	// only that level counts.
	Domains, Least int
	// Cost is the level's weight times the number of edges of the gang's communication that cross its boundaries, in
	// hundredths of an edge between two nodes; with a preferred level, in sixteenths of these.
	Cost int64
}

// Optimal reports that no placement of these members costs less.
func (p Placement) Optimal() bool { return p.Cost == p.Bound }

// Gap returns the excess of the placement's cost over the bound, as a fraction of the bound; 0 for an optimal one.
func (p Placement) Gap() float64 {
	if p.Optimal() {
		return 0
	}
	return float64(p.Cost-p.Bound) / float64(max(p.Bound, 1))
}
