package topology

import "slices"

// Shape is one kind of member: what it takes, and which rule bars it from which node ("" = allowed). Barred is indexed
// like the tree's nodes; nil bars nothing.
type Shape struct {
	Demand Capacity
	Barred []string
}

// Member is one process of a gang. Shape indexes Gang.Shapes.
type Member struct {
	Name  string
	Shape int
}

// Gang is what is asked: Members in rank order, and Required, the name or label key of the level one domain of which
// must hold them all ("" for none).
type Gang struct {
	Name     string
	Members  []Member
	Shapes   []Shape
	Required string
}

// Fault is a mistake of the caller, found before anything was tried. Nothing would make the same gang fit.
type Fault string

// The faults.
const (
	// FaultFree indicates that the free capacities are not one per node of the tree.
	FaultFree Fault = "the free capacities are not one per node"
	// FaultBarred indicates that a shape's rules are neither nil nor one per node of the tree.
	FaultBarred Fault = "a shape's rules are not one per node"
	// FaultDemand indicates that a shape's demand holds a negative number.
	FaultDemand Fault = "a shape's demand is negative"
	// FaultShape indicates that a member's shape is not in the gang.
	FaultShape Fault = "a member's shape is not in the gang"
)

// fault returns the first fault of the call, "" for none.
func fault(t *Tree, free []Capacity, g Gang) Fault {
	if len(free) != t.Len() {
		return FaultFree
	}
	for _, s := range g.Shapes {
		if s.Barred != nil && len(s.Barred) != t.Len() {
			return FaultBarred
		}
		if slices.ContainsFunc(s.Demand, func(d int64) bool { return d < 0 }) {
			return FaultDemand
		}
	}
	for _, m := range g.Members {
		if m.Shape < 0 || m.Shape >= len(g.Shapes) {
			return FaultShape
		}
	}
	return ""
}

// kind is the members that can stand for each other: those of one shape, or of several shapes that do not differ.
type kind struct {
	shape Shape
	// ranks of the members, ascending.
	ranks []int
	// slots is how many such members each vertex of the tree can hold when it holds nothing else of the gang.
	slots []int
}

// kinds sorts the members by shape, in order of their first rank.
func kinds(g Gang) []kind {
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
				found = append(found, kind{shape: s})
			}
		}
		k := &found[of[m.Shape]]
		k.ranks = append(k.ranks, rank)
	}
	return found
}

// sameShape reports whether two shapes take the same and are barred from the same nodes, though perhaps by other rules.
func sameShape(a, b Shape) bool {
	return slices.Equal(a.Demand, b.Demand) &&
		slices.EqualFunc(a.Barred, b.Barred, func(x, y string) bool { return (x == "") == (y == "") })
}

// count returns the slots of every vertex of the tree.
func (k kind) count(t *Tree, free []Capacity) []int {
	slots := make([]int, len(t.vertices))
	for node, v := range t.leaves {
		if k.shape.Barred == nil || k.shape.Barred[node] == "" {
			slots[v] = k.room(free[node])
		}
	}
	for v, u := range slices.Backward(t.vertices) {
		if u.parent >= 0 {
			slots[u.parent] += slots[v]
		}
	}
	return slots
}

// room returns how many members of the kind the capacity holds. Members that take nothing are bounded by their number:
// any node holds them all, and none is roomier than another.
func (k kind) room(c Capacity) int {
	for _, d := range k.shape.Demand {
		if d > 0 {
			return c.times(k.shape.Demand, most)
		}
	}
	return len(k.ranks)
}
