package cost

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// ladder holds the domains of every node, and the members of every domain.
type ladder struct {
	// of[l][n] is the domain of node n at rung l: rung 0 are the NVLink domains, or single nodes, and the others the
	// network levels, the innermost first. The last rung is the whole fleet.
	of [][]int32
	// children[l][d] are the domains of rung l−1 in domain d of rung l, and at rung 0 the nodes.
	children [][][]int32
	// shared is set if nodes share NVLink domains.
	shared bool
}

// newLadder reads the tree. A node without the label of a level is in a domain of its own there: nothing is known to be
// shared.
func newLadder(tree *topology.Tree) *ladder {
	l := &ladder{}
	levels := tree.Levels()
	var rungs []int
	inner := len(levels) // single nodes
	for i, level := range slices.Backward(levels) {
		switch {
		case !level.Accelerator:
			rungs = append(rungs, i)
		case inner == len(levels):
			inner, l.shared = i, true
		}
	}
	for _, level := range append([]int{inner}, rungs...) {
		l.of = append(l.of, domainsOf(tree, level))
	}
	l.of = append(l.of, make([]int32, tree.Len()))
	for rung, of := range l.of {
		l.children = append(l.children, l.inside(rung, of))
	}
	return l
}

// domainsOf numbers the domains of a level, in the order of their first nodes.
func domainsOf(tree *topology.Tree, level int) []int32 {
	numbers := make(map[string]int32)
	of := make([]int32, tree.Len())
	for node := range of {
		name := "\x00" + tree.Node(node)
		if domain, ok := tree.Domain(node, level); ok {
			name = domain.String()
		}
		number, known := numbers[name]
		if !known {
			number = int32(len(numbers))
			numbers[name] = number
		}
		of[node] = number
	}
	return of
}

// inside lists the parts of the domains of a rung.
func (l *ladder) inside(rung int, of []int32) [][]int32 {
	count := int32(0)
	for _, d := range of {
		count = max(count, d+1)
	}
	out := make([][]int32, count)
	seen := make(map[[2]int32]struct{}, len(of))
	for node, d := range of {
		child := int32(node)
		if rung > 0 {
			child = l.of[rung-1][node]
		}
		if _, known := seen[[2]int32{d, child}]; !known {
			seen[[2]int32{d, child}] = struct{}{}
			out[d] = append(out[d], child)
		}
	}
	return out
}

// groups returns the groups of members on nodes, in the order of the nodes' first appearance. each is the share of a
// member on a node; nodes below 0 have none.
func (l *ladder) groups(nodes []int, each func(i int) int64) []group {
	var out []group
	at := make(map[int32]int)
	for i, node := range nodes {
		if node < 0 || each(i) == 0 {
			continue
		}
		d := l.of[0][node]
		g, known := at[d]
		if !known {
			g = len(out)
			at[d] = g
			above := make([]int32, 0, len(l.of)-1)
			for _, of := range l.of[1:] {
				above = append(above, of[node])
			}
			out = append(out, group{above: above})
		}
		out[g].accelerators += each(i)
	}
	return out
}

// capacities returns the number of equal members that each domain of each rung holds when it is empty.
func (l *ladder) capacities(total []topology.Capacity, demand topology.Capacity) [][]int64 {
	out := make([][]int64, len(l.of))
	for rung := range l.of {
		out[rung] = make([]int64, len(l.children[rung]))
		for d, children := range l.children[rung] {
			for _, child := range children {
				if rung == 0 {
					out[rung][d] += fits(total[child], demand)
				} else {
					out[rung][d] += out[rung-1][child]
				}
			}
		}
	}
	return out
}

// fits returns the number of equal members that fit into a node.
func fits(total, demand topology.Capacity) int64 {
	most := int64(-1)
	for r, amount := range demand {
		switch {
		case amount <= 0:
		case r >= len(total):
			return 0
		case most < 0 || total[r]/amount < most:
			most = total[r] / amount
		}
	}
	return max(most, 0)
}

// best returns the groups of the best layout of so many equal members with so many accelerators each on the empty
// fleet: in the innermost rung with a domain that holds them all, and there and below in the fewest domains, evenly. At
// a boundary, the time of an exchange grows with the number of domains and falls with the accelerators of the smallest
// one, so no layout of a homogeneous fleet is faster. nil if the fleet does not hold them.
func (l *ladder) best(capacities [][]int64, members, each int64) []group {
	for rung, of := range capacities {
		at := 0
		for d, c := range of {
			if c > of[at] {
				at = d
			}
		}
		if len(of) > 0 && of[at] >= members {
			var out []group
			l.fill(capacities, rung, int32(at), members, each, &out)
			return out
		}
	}
	return nil
}

// fill spreads members over the fewest children of a domain, evenly.
func (l *ladder) fill(capacities [][]int64, rung int, domain int32, members, each int64, out *[]group) {
	if rung == 0 {
		*out = append(*out, group{accelerators: members * each, above: l.above(domain)})
		return
	}
	below := capacities[rung-1]
	children := slices.Clone(l.children[rung][domain])
	slices.SortStableFunc(children, func(a, b int32) int { return cmp.Compare(below[b], below[a]) })
	used, sum := 0, int64(0)
	for used < len(children) && sum < members {
		sum += below[children[used]]
		used++
	}
	// From the smallest on, so that members that do not fit there are spread over the larger ones.
	for i := used - 1; i >= 0; i-- {
		share := min(members/int64(i+1), below[children[i]])
		l.fill(capacities, rung-1, children[i], share, each, out)
		members -= share
	}
}

// above are the domains that a domain of rung 0 is in.
func (l *ladder) above(domain int32) []int32 {
	node := l.children[0][domain][0]
	out := make([]int32, 0, len(l.of)-1)
	for _, of := range l.of[1:] {
		out = append(out, of[node])
	}
	return out
}

// SharesNVLink reports whether nodes of the tree share NVLink domains.
func SharesNVLink(tree *topology.Tree) bool {
	return slices.ContainsFunc(tree.Levels(), func(l topology.Level) bool { return l.Accelerator })
}
