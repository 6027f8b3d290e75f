package topologytest

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/lockstep-project/lockstep/topology"
)

// The twin answers from labels and by trying everything. It shares no code with the package it checks.

func (s Scene) label(node, level int) string { return s.Nodes[node].Labels[s.Levels[level].Key] }

// Group names what the node belongs to at a level (len(Levels) for the node itself): its domain there or, where it lacks
// the label, that of the next level further in. ok is false in the second case.
func (s Scene) Group(node, level int) (name string, ok bool) {
	for l := level; l < len(s.Levels); l++ {
		if s.label(node, l) == "" {
			continue
		}
		path := make([]string, l+1)
		for i := range path {
			path[i] = s.label(node, i)
		}
		return strings.Join(path, "/"), l == level
	}
	return "node " + s.Nodes[node].Name, level == len(s.Levels)
}

// required is the index of the required level, -1 for none.
func (s Scene) required() int {
	return slices.IndexFunc(s.Levels, func(l topology.Level) bool { return l.Name == s.Gang.Required })
}

// Domains returns the nodes of each domain of the level: -1 is the whole fleet, len(Levels) the single nodes.
func (s Scene) Domains(level int) map[string][]int {
	domains := make(map[string][]int)
	for n := range s.Nodes {
		if level < 0 {
			domains[""] = append(domains[""], n)
		} else if name, ok := s.Group(n, level); ok {
			domains[name] = append(domains[name], n)
		}
	}
	return domains
}

// Exhaustive reports whether any assignment of the gang's members to nodes keeps every rule.
func (s Scene) Exhaustive() bool {
	for _, nodes := range s.Domains(s.required()) {
		if s.assign(nodes, 0, make([]int, len(s.Gang.Members))) {
			return true
		}
	}
	return false
}

func (s Scene) assign(nodes []int, member int, at []int) bool {
	if member == len(at) {
		return true
	}
	for _, n := range nodes {
		at[member] = n
		if s.Check(at[:member+1]) == nil && s.assign(nodes, member+1, at) {
			return true
		}
	}
	return false
}

// Check says what is wrong with the first members being at these nodes, the required level aside.
func (s Scene) Check(at []int) error {
	for n := range s.Nodes {
		left := slices.Clone(s.Free[n])
		for m, node := range at {
			shape := s.Gang.Shapes[s.Gang.Members[m].Shape]
			if node != n {
				continue
			}
			if shape.Barred != nil && shape.Barred[n] != "" {
				return fmt.Errorf("member %d is on %s, barred by %s", m, s.Nodes[n].Name, shape.Barred[n])
			}
			for r, d := range shape.Demand {
				left[r] -= d
				if d > 0 && left[r] < 0 {
					return fmt.Errorf("member %d overfills %s", m, s.Nodes[n].Name)
				}
			}
		}
	}
	return nil
}

// Slots is how many members of the gang's first member's shape the nodes hold. Members that take nothing are bounded by
// their number.
func (s Scene) Slots(nodes ...int) int {
	total := 0
	shape := s.Gang.Shapes[s.Gang.Members[0].Shape]
	for _, n := range nodes {
		if shape.Barred != nil && shape.Barred[n] != "" {
			continue
		}
		here := -1
		for r, d := range shape.Demand {
			if d > 0 && (here < 0 || int(s.Free[n][r]/d) < here) {
				here = int(s.Free[n][r] / d)
			}
		}
		if here < 0 {
			here = len(s.Gang.Members)
		}
		total += here
	}
	return total
}

// Smallest returns, for a gang of one shape, the innermost level that has a domain which holds all members, and the
// fewest slots that such a domain has; false if there is none.
func (s Scene) Smallest() (level, slots int, ok bool) {
	for l := len(s.Levels); l >= s.required(); l-- {
		for _, nodes := range s.Domains(l) {
			if s.required() >= 0 && s.label(nodes[0], s.required()) == "" {
				continue
			}
			if n := s.Slots(nodes...); n >= len(s.Gang.Members) && (!ok || n < slots) {
				level, slots, ok = l, n, true
			}
		}
		if ok {
			return level, slots, true
		}
	}
	return 0, 0, false
}

// Fewest says where a gang of one shape uses more child domains than it must: among the nodes, which share a domain of
// the level before the given one, and in each child likewise.
func (s Scene) Fewest(at, nodes []int, level int) error {
	if level > len(s.Levels) {
		return nil
	}
	var names []string
	children := make(map[string][]int)
	for _, n := range nodes {
		name, _ := s.Group(n, level)
		if children[name] == nil {
			names = append(names, name)
		}
		children[name] = append(children[name], n)
	}
	held, used := 0, 0
	for _, name := range names {
		if here := membersOn(at, children[name]); here > 0 {
			held += here
			used++
			if err := s.Fewest(at, children[name], level+1); err != nil {
				return err
			}
		}
	}
	for set := range uint(1) << len(names) { // every set of children, however silly
		slots := 0
		for i, name := range names {
			if set&(1<<i) != 0 {
				slots += s.Slots(children[name]...)
			}
		}
		if n := bits.OnesCount(set); slots >= held && n < used {
			return fmt.Errorf("at level %d: %d members use %d of %q, %d would do", level, held, used, names, n)
		}
	}
	return nil
}

func membersOn(at, nodes []int) int {
	n := 0
	for _, node := range at {
		if slices.Contains(nodes, node) {
			n++
		}
	}
	return n
}

// Crossings counts the edges of a ring over the ranks that leave a domain of the level.
func (s Scene) Crossings(at []int, level int) int {
	n := 0
	for i := range at {
		here, _ := s.Group(at[i], level)
		next, _ := s.Group(at[(i+1)%len(at)], level)
		if here != next {
			n++
		}
	}
	return n
}
