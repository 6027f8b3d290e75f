package topologytest

import (
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/topology"
)

// The twin answers from labels and by trying everything. It shares no code with the package it checks.

// usualWeight is the weight of single nodes and of a level that gives none; a level that the gang does not prefer
// counts one part in unpreferred.
const (
	usualWeight = 100
	unpreferred = 16
)

func (s Scene) label(node, level int) string { return s.Nodes[node].Labels[s.Levels[level].Key] }

// Level is the index of the level with that name or key: -1 for none, len(Levels) for single nodes.
func (s Scene) Level(nameOrKey string) int {
	switch nameOrKey {
	case "":
		return -1
	case topology.LevelNode, "kubernetes.io/hostname":
		return len(s.Levels)
	}
	return slices.IndexFunc(s.Levels, func(l topology.Level) bool { return l.Name == nameOrKey || l.Key == nameOrKey })
}

// Group names the node's group at a level (len(Levels) for the node itself): its domain there or, where it lacks the
// label, that of the next level further in that it has, in either hierarchy; an accelerator level, though, falls back
// to accelerator levels only. ok is false where the label is missing.
func (s Scene) Group(node, level int) (name string, ok bool) {
	for l := level; l < len(s.Levels); l++ {
		if s.label(node, l) == "" || level < len(s.Levels) && s.Levels[level].Accelerator && !s.Levels[l].Accelerator {
			continue
		}
		path := []string{s.Levels[l].Name}
		for i := range l + 1 {
			if s.Levels[i].Accelerator == s.Levels[l].Accelerator {
				path = append(path, s.label(node, i))
			}
		}
		return strings.Join(path, "/"), l == level
	}
	return "node " + s.Nodes[node].Name, level == len(s.Levels)
}

// Groups numbers the groups of a level: one number per node. inside marks the nodes that have the level's label.
func (s Scene) Groups(level int) (group []int, inside []bool) {
	group, inside = make([]int, len(s.Nodes)), make([]bool, len(s.Nodes))
	var names []string
	for n := range s.Nodes {
		name, ok := s.Group(n, level)
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
		group[n], inside[n] = slices.Index(names, name), ok
	}
	return group, inside
}

// Weights returns the cost of a crossing at each level and, last, between single nodes.
func (s Scene) Weights() []int64 {
	weights := make([]int64, len(s.Levels)+1)
	for l := range weights {
		weights[l] = usualWeight
		if l < len(s.Levels) && s.Levels[l].Weight != 0 {
			weights[l] = s.Levels[l].Weight
		}
		if s.Gang.Preferred != "" && l <= s.Level(s.Gang.Preferred) {
			weights[l] *= unpreferred // in units of a sixteenth, so that the levels further in stay whole numbers
		}
	}
	return weights
}

// Crossings counts the edges of the gang's communication that leave a domain of the level.
func (s Scene) Crossings(at []int, level int) int {
	crossings := 0
	for _, e := range s.edges(len(at)) {
		here, _ := s.Group(at[e[0]], level)
		there, _ := s.Group(at[e[1]], level)
		if here != there {
			crossings++
		}
	}
	return crossings
}

// edges are the pairs of ranks that talk. A ring of two talks both ways.
func (s Scene) edges(ranks int) [][2]int {
	var edges [][2]int
	for i := range ranks {
		switch s.Gang.Communication {
		case topology.Ring:
			if ranks > 1 {
				edges = append(edges, [2]int{i, (i + 1) % ranks})
			}
		case topology.Chain:
			if i+1 < ranks {
				edges = append(edges, [2]int{i, i + 1})
			}
		case topology.AllToAll:
			for j := range i {
				edges = append(edges, [2]int{j, i})
			}
		}
	}
	return edges
}

// CostOf is the cost of the first members being at these nodes.
func (s Scene) CostOf(at []int) int64 {
	var cost int64
	for l, w := range s.Weights() {
		cost += w * int64(s.Crossings(at, l))
	}
	return cost
}

// Kinds returns the kind of each member, numbered by first rank, and the most numerous one, the first of several.
func (s Scene) Kinds() (of []int, main int) {
	of = make([]int, len(s.Gang.Members))
	var counts []int
	for i, m := range s.Gang.Members {
		of[i] = len(counts)
		for j, other := range s.Gang.Members[:i] {
			if s.alike(m.Shape, other.Shape) {
				of[i] = of[j]
				break
			}
		}
		if of[i] == len(counts) {
			counts = append(counts, 0)
		}
		counts[of[i]]++
	}
	return of, slices.Index(counts, slices.Max(counts))
}

// alike reports whether members of two shapes can stand for each other on every node.
func (s Scene) alike(a, b int) bool {
	for n := range s.Nodes {
		if s.barred(a, n) != s.barred(b, n) {
			return false
		}
	}
	return slices.Equal(s.Gang.Shapes[a].Demand, s.Gang.Shapes[b].Demand)
}

func (s Scene) barred(shape, node int) bool {
	rules := s.Gang.Shapes[shape].Barred
	return rules != nil && rules[node] != ""
}

// Room returns the number of members of the shape that the node has capacity for, at most the limit; none if it is
// barred.
func (s Scene) Room(shape, node, limit int) int {
	if s.barred(shape, node) {
		return 0
	}
	room := limit
	for r, d := range s.Gang.Shapes[shape].Demand {
		if d > 0 {
			room = min(room, int(s.Free[node][r]/d))
		}
	}
	return room
}

// Usable reports whether the node has the label of every level that a rule of the gang is about.
func (s Scene) Usable(node int) bool {
	for _, level := range s.ruled() {
		if _, ok := s.Group(node, s.Level(level)); !ok {
			return false
		}
	}
	return true
}

// ruled lists the levels that rules are about.
func (s Scene) ruled() []string {
	var levels []string
	g := s.Gang
	if g.Required != "" {
		levels = append(levels, g.Required)
	}
	if g.Segment.Size > 0 {
		levels = append(levels, g.Segment.Level)
	}
	if g.Spread.Max > 0 {
		levels = append(levels, g.Spread.Level)
	}
	if g.Spares.Nodes > 0 {
		levels = append(levels, g.Spares.Level)
	}
	return levels
}

// Segments returns the segment of each member, -1 for those of kinds that have none.
func (s Scene) Segments() []int {
	of, main := s.Kinds()
	next := 0
	for i, kind := range of {
		if of[i] = -1; kind == main && s.Gang.Segment.Size > 0 {
			of[i] = next / s.Gang.Segment.Size
			next++
		}
	}
	return of
}

// anyPlaced reports whether members run already, which makes spares void.
func (s Scene) anyPlaced() bool {
	return slices.ContainsFunc(s.Gang.Members, func(m topology.Member) bool { return m.Placed })
}
