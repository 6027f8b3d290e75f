package topologytest

import (
	"errors"
	"fmt"
	"slices"
)

// Check returns the rules that the gang's first members break at these nodes. It reads labels and has no state, so that
// it shares only the scene with Best; Best checks that no longer sequence fits.
func (s Scene) Check(at []int) error {
	for m, n := range at {
		if n < 0 || n >= len(s.Nodes) {
			return fmt.Errorf("member %d is on node %d, which does not exist", m, n)
		}
	}
	return errors.Join(
		s.checkCount(len(at)), s.checkMembers(at), s.checkNodes(at), s.checkRequired(at), s.checkSegments(at),
		s.checkSpread(at), s.checkSpares(at),
	)
}

func (s Scene) checkCount(count int) error {
	g := s.Gang
	switch {
	case count > len(g.Members), g.Min == 0 && count < len(g.Members), count < g.Min:
		return fmt.Errorf("%d of %d members are placed, at least %d must be", count, len(g.Members), g.Min)
	case !s.whole(count):
		return fmt.Errorf("%d members leave a short segment", count)
	}
	return nil
}

// checkMembers checks each member alone.
func (s Scene) checkMembers(at []int) error {
	for i, n := range at {
		m := s.Gang.Members[i]
		if m.Placed && m.Node != n {
			return fmt.Errorf("member %d runs on %s and is moved to %s", i, s.Nodes[m.Node].Name, s.Nodes[n].Name)
		}
		if !m.Placed && s.barred(m.Shape, n) {
			return fmt.Errorf("member %d is on %s, which bars it", i, s.Nodes[n].Name)
		}
		for _, level := range s.ruled() {
			if l := s.Level(level); l < len(s.Levels) && s.label(n, l) == "" {
				return fmt.Errorf("member %d is on %s, which has no %s", i, s.Nodes[n].Name, level)
			}
		}
	}
	return nil
}

// checkNodes adds up the demand on each node.
func (s Scene) checkNodes(at []int) error {
	for n, free := range s.Free {
		left, held := slices.Clone(free), 0
		for i, node := range at {
			if node != n {
				continue
			}
			held++
			if s.Gang.Members[i].Placed {
				continue // Free already excludes its demand
			}
			for r, d := range s.Gang.Shapes[s.Gang.Members[i].Shape].Demand {
				if left[r] -= d; d > 0 && left[r] < 0 {
					return fmt.Errorf("member %d overfills %s", i, s.Nodes[n].Name)
				}
			}
		}
		if s.Gang.PerNode > 0 && held > s.Gang.PerNode {
			return fmt.Errorf("%d members are on %s, at most %d may be", held, s.Nodes[n].Name, s.Gang.PerNode)
		}
	}
	return nil
}

func (s Scene) checkRequired(at []int) error {
	if s.Gang.Required == "" {
		return nil
	}
	return s.together(at, s.Gang.Required)
}

// together returns an error if nodes are in several domains of the level.
func (s Scene) together(at []int, level string) error {
	for _, n := range at {
		first, _ := s.Group(at[0], s.Level(level))
		if group, _ := s.Group(n, s.Level(level)); group != first {
			return fmt.Errorf("members in one %s are in %s and in %s", level, first, group)
		}
	}
	return nil
}

func (s Scene) checkSegments(at []int) error {
	for segment, nodes := range s.nodesOfSegments(at) {
		if err := s.together(nodes, s.Gang.Segment.Level); err != nil {
			return fmt.Errorf("segment %d: %w", segment, err)
		}
	}
	return nil
}

// nodesOfSegments are the nodes of each segment's members.
func (s Scene) nodesOfSegments(at []int) map[int][]int {
	nodes := make(map[int][]int)
	for i, segment := range s.Segments()[:len(at)] {
		if segment >= 0 {
			nodes[segment] = append(nodes[segment], at[i])
		}
	}
	return nodes
}

func (s Scene) checkSpread(at []int) error {
	if s.Gang.Spread.Max == 0 {
		return nil
	}
	counted := at
	if s.Gang.Segment.Size > 0 {
		counted = nil
		for _, nodes := range s.nodesOfSegments(at) {
			counted = append(counted, nodes[0])
		}
	}
	counts := make(map[string]int)
	for _, n := range counted {
		group, _ := s.Group(n, s.Level(s.Gang.Spread.Level))
		if counts[group]++; counts[group] > s.Gang.Spread.Max {
			return fmt.Errorf("more than %d are in %s", s.Gang.Spread.Max, group)
		}
	}
	return nil
}

func (s Scene) checkSpares(at []int) error {
	if s.Gang.Spares.Nodes == 0 || s.anyPlaced() {
		return nil
	}
	for _, used := range at {
		domain, _ := s.Group(used, s.Level(s.Gang.Spares.Level))
		spares := 0
		for n := range s.Nodes {
			group, _ := s.Group(n, s.Level(s.Gang.Spares.Level))
			if group == domain && !slices.Contains(at, n) && s.spare(n) {
				spares++
			}
		}
		if spares < s.Gang.Spares.Nodes {
			return fmt.Errorf("%s has %d spares", domain, spares)
		}
	}
	return nil
}
