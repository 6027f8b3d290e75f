// Package topologytest builds fleets and gangs for tests of placement: random scenes with an exhaustive, deliberately
// dumb twin of topology.Place, and a script language whose output is a picture of a fleet.
package topologytest

import (
	"fmt"
	"strings"

	"github.com/lockstep-project/lockstep/topology"
)

// Scene is one question to topology.Place. Free and the shapes' Barred are indexed like Nodes, not like a tree.
type Scene struct {
	Levels []topology.Level
	Nodes  []topology.Node
	Free   []topology.Capacity
	Gang   topology.Gang
}

// Draw makes a scene small enough to try every assignment. Each choice is one call of choose, which returns a number
// in [0, n): a random source or the bytes of a fuzzer. The gang has at most the given number of shapes.
func Draw(shapes int, choose func(n int) int) Scene {
	var s Scene
	for l := range 1 + choose(3) {
		s.Levels = append(s.Levels, topology.Level{Name: fmt.Sprintf("l%d", l), Key: fmt.Sprintf("test/level-%d", l)})
	}
	resources := 1 + choose(2)
	for n := range 1 + choose(7) { // n7 … n13: natural and plain order differ
		labels := map[string]string{}
		for _, l := range s.Levels {
			if v := choose(7); v > 0 { // else the label is missing
				labels[l.Key] = fmt.Sprintf("v%d", v%3)
			}
		}
		s.Nodes = append(s.Nodes, topology.Node{Name: fmt.Sprintf("n%d", n+7), Labels: labels})
		s.Free = append(s.Free, drawFree(resources, choose))
	}
	s.Gang.Name = "gang"
	for range 1 + choose(shapes) {
		shape := topology.Shape{Demand: drawDemand(resources, choose)}
		if choose(2) == 0 {
			shape.Barred = make([]string, len(s.Nodes))
			for n := range s.Nodes {
				shape.Barred[n] = []string{"", "", "", "taint", "selector"}[choose(5)]
			}
		}
		s.Gang.Shapes = append(s.Gang.Shapes, shape)
	}
	for m := range 1 + choose(6) {
		member := topology.Member{Name: fmt.Sprintf("m%d", m), Shape: choose(len(s.Gang.Shapes))}
		s.Gang.Members = append(s.Gang.Members, member)
	}
	if l := choose(2 * len(s.Levels)); l < len(s.Levels) {
		s.Gang.Required = s.Levels[l].Name
	}
	return s
}

func drawFree(resources int, choose func(n int) int) topology.Capacity {
	c := make(topology.Capacity, resources)
	for r := range c {
		c[r] = int64(choose(4))
	}
	return c
}

// drawDemand seldom asks for nothing and never for much, so that gangs often need more than one node.
func drawDemand(resources int, choose func(n int) int) topology.Capacity {
	c := make(topology.Capacity, resources)
	c[0] = int64([]int{1, 2, 1, 1, 0}[choose(5)])
	for r := range c[1:] {
		c[1+r] = int64(choose(3))
	}
	return c
}

// Shuffled returns the scene with its nodes in another order: node i becomes the one at order[i].
func (s Scene) Shuffled(order []int) Scene {
	shuffled := s
	shuffled.Nodes = pick(s.Nodes, order)
	shuffled.Free = pick(s.Free, order)
	shuffled.Gang.Shapes = make([]topology.Shape, len(s.Gang.Shapes))
	for i, shape := range s.Gang.Shapes {
		shuffled.Gang.Shapes[i] = topology.Shape{Demand: shape.Demand, Barred: pick(shape.Barred, order)}
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

// Place asks topology.Place. Nodes[i] of the placement returned is an index into the scene's nodes.
func (s Scene) Place() (topology.Placement, *topology.Shortfall) {
	t := topology.NewTree(s.Levels, s.Nodes)
	order := make([]int, t.Len()) // tree index → scene index
	for i, n := range s.Nodes {
		at, _ := t.Index(n.Name)
		order[at] = i
	}
	inTree := s.Shuffled(order)
	placement, short := topology.Place(t, inTree.Free, inTree.Gang)
	for m, n := range placement.Nodes {
		placement.Nodes[m] = order[n]
	}
	return placement, short
}

// String prints the scene for the report of a failed test.
func (s Scene) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "levels %v\n", s.Levels)
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
	fmt.Fprintf(&b, "members %v, required %q", s.Gang.Members, s.Gang.Required)
	return b.String()
}
