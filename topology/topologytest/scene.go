// Package topologytest builds fleets and gangs for tests of placement: random scenes with an exhaustive, deliberately
// dumb twin of topology.Place, and a script language whose output is a picture of a fleet.
package topologytest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/topology"
)

// Scene is one question to topology.Place. Free, Total, the shapes' Barred and the nodes of placed members are indexed
// like Nodes, not like a tree.
type Scene struct {
	Levels []topology.Level
	Nodes  []topology.Node
	Free   []topology.Capacity
	// Total is nil if it is not known.
	Total []topology.Capacity
	Gang  topology.Gang
}

// Clone returns a scene whose slices may be changed; labels and capacities are shared.
func (s Scene) Clone() Scene {
	order := make([]int, len(s.Nodes))
	for i := range order {
		order[i] = i
	}
	c := s.Shuffled(order)
	c.Levels = slices.Clone(s.Levels)
	return c
}

// Shuffled returns the scene with its nodes in another order: node i becomes the one at order[i].
func (s Scene) Shuffled(order []int) Scene {
	shuffled := s
	shuffled.Nodes = pick(s.Nodes, order)
	shuffled.Free = pick(s.Free, order)
	shuffled.Total = pick(s.Total, order)
	shuffled.Gang.Shapes = make([]topology.Shape, len(s.Gang.Shapes))
	for i, shape := range s.Gang.Shapes {
		shuffled.Gang.Shapes[i] = topology.Shape{Demand: shape.Demand, Barred: pick(shape.Barred, order)}
	}
	shuffled.Gang.Members = slices.Clone(s.Gang.Members)
	for i, m := range shuffled.Gang.Members {
		if m.Placed {
			shuffled.Gang.Members[i].Node = slices.Index(order, m.Node)
		}
	}
	return shuffled
}

func pick[T any](from []T, order []int) []T {
	if from == nil {
		return nil
	}
	picked := make([]T, len(order))
	for i, j := range order {
		picked[i] = from[j]
	}
	return picked
}

// InTree returns the scene with its nodes in the order of its tree, the ledger of that, and where each node was before.
func (s Scene) InTree() (inTree Scene, ledger topology.Ledger, order []int) {
	t, err := topology.NewTree(s.Levels, s.Nodes)
	if err != nil {
		panic(fmt.Sprintf("%s\nis no tree: %v", s, err)) // scenes have distinct levels and nodes
	}
	order = make([]int, t.Len())
	for i, n := range s.Nodes {
		at, _ := t.Index(n.Name)
		order[at] = i
	}
	inTree = s.Shuffled(order)
	return inTree, topology.Ledger{Tree: t, Free: inTree.Free, Total: inTree.Total}, order
}

// Place asks topology.Place. Nodes[i] of the placement returned is an index into the scene's nodes.
func (s Scene) Place() (topology.Placement, *topology.Shortfall, error) {
	inTree, ledger, order := s.InTree()
	placement, short, err := topology.Place(ledger, inTree.Gang)
	for m, n := range placement.Nodes {
		placement.Nodes[m] = order[n]
	}
	return placement, short, err
}

// Names returns the names of the nodes with these indices.
func (s Scene) Names(nodes []int) []string {
	found := make([]string, len(nodes))
	for i, n := range nodes {
		found[i] = s.Nodes[n].Name
	}
	return found
}

// String prints the scene for the report of a failed test.
func (s Scene) String() string {
	var b strings.Builder
	for l, level := range s.Levels {
		fmt.Fprintf(&b, "level %d is %s, weight %d, accelerator %t\n", l, level.Name, level.Weight, level.Accelerator)
	}
	for i, n := range s.Nodes {
		fmt.Fprintf(&b, "%s free %v", n.Name, s.Free[i])
		for l := range s.Levels {
			fmt.Fprintf(&b, " %q", s.label(i, l))
		}
		fmt.Fprintln(&b)
	}
	for i, shape := range s.Gang.Shapes {
		fmt.Fprintf(&b, "shape %d takes %v, barred %q\n", i, shape.Demand, shape.Barred)
	}
	g := s.Gang
	for i, m := range g.Members {
		fmt.Fprintf(&b, "member %d has shape %d", i, m.Shape)
		if m.Placed {
			fmt.Fprintf(&b, ", runs on %s", s.Nodes[m.Node].Name)
		}
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "min %d, required %q, preferred %q, segment %+v, spread %+v, spares %+v, %d per node, %s",
		g.Min, g.Required, g.Preferred, g.Segment, g.Spread, g.Spares, g.PerNode, g.Communication)
	return b.String()
}
