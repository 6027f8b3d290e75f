package topology

import "github.com/lockstep-project/lockstep/topology/grid"

// Gang is the question: Members in rank order, their shapes, and the rules for their nodes. A level is given by its
// name or its label key, "" for none; LevelNode is the single node.
//
// A node that lacks the label of a level that a rule is about (required, segment, spread, spares) takes no member: a
// node counts as inside a domain only if its labels place it there.
type Gang struct {
	Name    string
	Members []Member
	Shapes  []Shape
	// Resources are the names of the numbers in a Demand, for sentences; nil if unknown.
	Resources []string
	// TPU is the shape of the TPU slices that members ask for by labels, for sentences; empty for none.
	TPU string
	// Min makes the gang elastic: if not all members fit, the longest sequence of first ranks does that has at least
	// this many. 0 means all of them.
	Min int
	// Required is the level with one domain that must hold all members.
	Required string
	// Preferred is the innermost level whose boundaries the gang minds. Boundaries further in count a sixteenth, since
	// they still decide between placements that are otherwise equal. "" means all levels.
	Preferred string
	Segment   Segment
	Spread    Spread
	Spares    Spares
	// PerNode is the most members of the gang on one node, 0 for no limit.
	PerNode       int
	Communication Communication
	// Box asks for all nodes of a box of this shape, in any orientation, in one torus (LabelTorus); the zero Size for
	// none. Members are divided evenly, consecutive ranks together, along the box's last axis first.
	Box grid.Size
}

// Segment asks that consecutive ranks in groups of Size share one domain of Level; the last group may be shorter unless
// Equal. In a gang of several kinds of members it is about the most numerous kind.
type Segment struct {
	Size  int
	Level string
	Equal bool
}

// Spread limits the segments of the gang in one domain of Level to Max; members if the gang has no segments.
type Spread struct {
	Max   int
	Level string
}

// Spares leaves Nodes nodes that could take a member unused in every domain of Level that the gang uses.
type Spares struct {
	Nodes int
	Level string
}

// Member is one process of a gang. Shape indexes Gang.Shapes.
type Member struct {
	Name  string
	Shape int
	// Late members arrive when the others run. They have a place like all others, which the caller holds for them.
	Late bool
	// Placed members run already, on Node; Free no longer includes their demand. The others are placed near them, and
	// the segment of a placed member stays in its domain. Spares are there to be used then.
	Placed bool
	Node   int
}

// Shape is one kind of member: its demand, and the rule that bars it from each node ("" = allowed). Barred is indexed
// like the tree's nodes; nil bars nothing.
type Shape struct {
	Demand Capacity
	Barred []string
}

// Communication is the graph of the ranks' traffic: a placement's cost counts its edges.
type Communication int

// The patterns of communication.
const (
	// Ring joins each rank to the next and the last to the first: data parallel training.
	Ring Communication = iota
	// Chain joins each rank to the next: pipeline stages.
	Chain
	// AllToAll joins each pair of ranks: experts.
	AllToAll
)

// String returns the value of the annotation.
func (c Communication) String() string {
	switch c {
	case Ring:
		return "ring"
	case Chain:
		return "chain"
	case AllToAll:
		return "all-to-all"
	}
	return "unknown"
}

// ParseCommunication reads the value of the annotation; "" is a ring.
func ParseCommunication(value string) (Communication, bool) {
	for _, c := range []Communication{Ring, Chain, AllToAll} {
		if value == c.String() {
			return c, true
		}
	}
	return Ring, value == ""
}
