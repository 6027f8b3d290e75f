package topology

import "slices"

// kind is the members that can stand for each other: those of one shape, or of several shapes that do not differ.
type kind struct {
	shape Shape
	// ranks of the members, ascending. They are not written: those of several gangs may be the same memory.
	ranks []int
}

// kinds sorts the members by shape, in order of their first rank.
func kinds(g Gang) []kind {
	if len(g.Shapes) == 1 && len(g.Members) > 0 {
		return []kind{{g.Shapes[0], ascending(len(g.Members))}}
	}
	found := make([]kind, 0, min(len(g.Shapes), len(g.Members)))
	of := make([]int, len(g.Shapes))
	for i := range of {
		of[i] = -1
	}
	for rank, m := range g.Members {
		if of[m.Shape] < 0 {
			s := g.Shapes[m.Shape]
			of[m.Shape] = slices.IndexFunc(found, func(k kind) bool { return sameShape(k.shape, s) })
			if of[m.Shape] < 0 {
				of[m.Shape] = len(found)
				found = append(found, kind{shape: s, ranks: make([]int, 0, (len(g.Members)-rank)/(1+len(found)))})
			}
		}
		k := &found[of[m.Shape]]
		k.ranks = append(k.ranks, rank)
	}
	return found
}

// kinds are those of the gang, with ranks in memory that the tree retains if all members are of one shape.
func (t *Tree) kinds(g Gang) []kind {
	if len(g.Shapes) != 1 || len(g.Members) == 0 {
		return kinds(g)
	}
	n := len(g.Members)
	all := t.ranks.Load()
	if all == nil || len(*all) < n {
		longer := ascending(n)
		all = &longer
		t.ranks.Store(all)
	}
	return []kind{{g.Shapes[0], (*all)[:n:n]}}
}

// ascending returns the numbers from 0 to n-1.
func ascending(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// mostNumerous returns the index of the kind with most members, the first of equal ones.
func mostNumerous(kinds []kind) int {
	main := 0
	for i, k := range kinds {
		if len(k.ranks) > len(kinds[main].ranks) {
			main = i
		}
	}
	return main
}

// mainKind returns the most numerous kind of a gang, whether its members run or not.
func mainKind(g Gang) kind {
	all := kinds(g)
	return all[mostNumerous(all)]
}

// sameShape reports whether two shapes take the same and are barred from the same nodes, though perhaps by other rules.
func sameShape(a, b Shape) bool {
	if len(a.Barred) == 0 {
		a, b = b, a
	}
	if !slices.Equal(a.Demand, b.Demand) {
		return false
	}
	for node, rule := range a.Barred {
		if (rule != "") != (node < len(b.Barred) && b.Barred[node] != "") {
			return false
		}
	}
	return true
}

// barred reports whether a rule bars the kind from the node.
func (k kind) barred(node int) bool { return k.shape.Barred != nil && k.shape.Barred[node] != "" }

// free reports whether members of the kind take nothing.
func (k kind) free() bool {
	return !slices.ContainsFunc(k.shape.Demand, func(d int64) bool { return d > 0 })
}

// room returns the number of members of the kind that the capacity holds. Members that take nothing are bounded by
// their number: any node holds them all, and none is roomier than another.
func (k kind) room(c Capacity) int {
	if k.free() {
		return len(k.ranks)
	}
	return c.times(k.shape.Demand, unlimited)
}
