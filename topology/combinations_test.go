package topology_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/topologytest"
)

// verdict is the promise to which the answer for a combination of rules is held. Each but refused includes the ones
// before.
type verdict int

const (
	// refused: the combination is an error that names it.
	refused verdict = iota
	// bounded: the placement obeys every rule, and its bound is a lower bound.
	bounded
	// complete: a gang that can be placed is placed, with as many members as possible.
	complete
	// exact: no placement costs less, and the bound proves it.
	exact
)

// The rows of the table in DESIGN.md.
const (
	oneKind        = "one kind, any of: required, preferred, segments, spread, node cap, elastic; ring, chain, all-to-all"
	oneKindSpared  = "one kind with spares, one member per node or a spares' domain without domains inside"
	orderlyKinds   = "two kinds, the smaller one member and first or last rank; all-to-all with any smaller kind up to 16; no segments, spares or elastic size"
	severalKinds   = "several kinds, all but one 16 members together"
	running        = "running members"
	crossing       = "accelerator domains that cross network domains"
	sharedSpares   = "spares among nodes that hold several members, in domains with domains inside"
	awkwardSpares  = "spares with several kinds, or with accelerator domains that cross network domains"
	largeKinds     = "more than one large kind, also beside running members"
	largeKindRules = "more than one large kind with segments, spread or spares"
	bothCrossing   = "segments, spread and spares over levels of both hierarchies, where these cross"
)

// combinations reads the table in DESIGN.md: the tests hold its promises.
func combinations(t *testing.T) map[string]verdict {
	t.Helper()
	text, err := os.ReadFile("DESIGN.md")
	if err != nil {
		t.Fatal(err)
	}
	table := make(map[string]verdict)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			continue
		}
		name := strings.TrimSpace(cells[2])
		if v := slices.Index([]string{"refused", "bounded", "complete", "exact"}, name); v >= 0 {
			table[strings.TrimSpace(cells[1])] = verdict(v)
		}
	}
	return table
}

// row returns the row of the table that the scene's gang belongs to.
func row(s topologytest.Scene) string {
	of, main := s.Kinds()
	spares, kinds := s.Gang.Spares.Nodes > 0, slices.Max(of)+1
	switch {
	case slices.ContainsFunc(s.Levels, func(l topology.Level) bool { return l.Accelerator }):
		switch {
		case bothHierarchies(s):
			return bothCrossing
		case spares:
			return awkwardSpares
		}
		return crossing
	case kinds > 1 && spares:
		return awkwardSpares
	case kinds == 2 && orderly(s, of, main):
		return orderlyKinds
	case kinds > 1:
		return severalKinds
	case slices.ContainsFunc(s.Gang.Members, func(m topology.Member) bool { return m.Placed }):
		return running
	case spares && nestedSpares(s):
		return sharedSpares
	case spares:
		return oneKindSpared
	}
	return oneKind
}

// bothHierarchies reports whether segments, spread and spares are about levels of both.
func bothHierarchies(s topologytest.Scene) bool {
	seen := make(map[bool]bool)
	for _, rule := range []struct {
		number int
		level  string
	}{
		{s.Gang.Segment.Size, s.Gang.Segment.Level},
		{s.Gang.Spread.Max, s.Gang.Spread.Level},
		{s.Gang.Spares.Nodes, s.Gang.Spares.Level},
	} {
		if level := s.Level(rule.level); rule.number > 0 && level < len(s.Levels) {
			seen[s.Levels[level].Accelerator] = true
		}
	}
	return len(seen) > 1
}

// orderly reports whether no order of ranks could be in the way of the best places.
func orderly(s topologytest.Scene, of []int, main int) bool {
	if s.Gang.Segment.Size > 0 ||
		slices.ContainsFunc(s.Gang.Members, func(m topology.Member) bool { return m.Placed }) {
		return false // a last, shorter segment may have to precede its neighbors
	}
	if s.Gang.Communication == topology.AllToAll {
		return true
	}
	var small []int
	for rank, kind := range of {
		if kind != main {
			small = append(small, rank)
		}
	}
	return len(small) == 1 && (small[0] == 0 || small[0] == len(of)-1) && s.Gang.Min == 0
}

// nestedSpares reports whether spares have to be found among nodes that hold several members, in domains with domains
// inside them.
func nestedSpares(s topologytest.Scene) bool {
	level := s.Level(s.Gang.Spares.Level)
	if s.Gang.Spares.Nodes == 0 || level >= len(s.Levels)-1 || s.Gang.PerNode == 1 {
		return false
	}
	for n := range s.Nodes {
		if s.Usable(n) && s.Room(s.Gang.Members[0].Shape, n, 2) > 1 {
			return true
		}
	}
	return false
}

// Every row of the table is tested, and nothing else is: TestP3_P4_AnswersLikeTheTwin draws those that small scenes
// have.
func TestCombinations(t *testing.T) {
	table := combinations(t)
	for _, want := range []string{
		oneKind, oneKindSpared, orderlyKinds, severalKinds, running, crossing, sharedSpares, awkwardSpares, largeKinds,
		largeKindRules, bothCrossing,
	} {
		if _, ok := table[want]; !ok {
			t.Errorf("DESIGN.md has no row %q", want)
		}
		delete(table, want)
	}
	for name := range table {
		t.Errorf("no test knows the row %q", name)
	}
}

// Two kinds of more than 16 members each are packed: the placement obeys the rules and its bound.
func TestCombinations_LargeKindsAreBounded(t *testing.T) {
	table := combinations(t)
	if table[largeKinds] != bounded || table[largeKindRules] != refused || table[bothCrossing] != refused {
		t.Error("DESIGN.md promises something else")
	}
	placed, best := 0, 0
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 17))
		s := larger(r)
		s.Gang.Shapes = append(s.Gang.Shapes, topology.Shape{Demand: topology.Capacity{2}})
		s.Gang.Members = nil
		for m := range 17 + 17 + r.IntN(20) {
			s.Gang.Members = append(s.Gang.Members, topology.Member{Name: fmt.Sprint("m", m), Shape: m % 2})
		}
		if r.IntN(2) == 0 {
			s.Gang.PerNode = 1 + r.IntN(3)
		}
		p, short, err := s.Place()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if short == nil {
			placed++
			if err := s.Check(p.Nodes); err != nil || p.Bound > p.Cost || p.Cost != s.CostOf(p.Nodes) {
				t.Fatalf("seed %d: cost %d, bound %d: %v", seed, p.Cost, p.Bound, err)
			}
			if p.Optimal() {
				best++
			}
		}
		s.Gang.Segment = topology.Segment{Size: 2, Level: "l0"}
		if _, _, err := s.Place(); !errors.Is(err, topology.ErrCombination) {
			t.Fatalf("seed %d: segments of two large kinds: %v", seed, err)
		}
	}
	if t.Logf("%d of 1000 are placed, %d known to be optimal", placed, best); placed < 200 {
		t.Error("too few are placed")
	}
}

// More than 16 members of each of two kinds join others of both that run: these stay, the rules are obeyed, and the
// joining members fit as long as nothing else has taken their places.
func TestCombinations_LargeKindsJoinRunningOnes(t *testing.T) {
	joined, lost := 0, 0
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 18))
		s := larger(r)
		s.Gang.Shapes = append(s.Gang.Shapes, topology.Shape{Demand: topology.Capacity{2}})
		s.Gang.Members = nil
		running := 2 + 2*r.IntN(9)
		for m := range running + 34 {
			s.Gang.Members = append(s.Gang.Members, topology.Member{Name: fmt.Sprint("m", m), Shape: m % 2})
		}
		if r.IntN(2) == 0 {
			s.Gang.PerNode = 1 + r.IntN(3)
		}
		if r.IntN(3) == 0 {
			s.Gang.Required = s.Levels[r.IntN(2)].Name
		}
		p, short, err := s.Place()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if short != nil {
			continue
		}
		for rank := range running {
			m := &s.Gang.Members[rank]
			m.Placed, m.Node = true, p.Nodes[rank]
			s.Free[m.Node][0] -= s.Gang.Shapes[m.Shape].Demand[0]
		}
		p, short, err = s.Place()
		switch {
		case err != nil:
			t.Fatalf("seed %d: %v", seed, err)
		case short != nil:
			lost++
			continue
		}
		joined++
		if err := s.Check(p.Nodes); err != nil || p.Bound > p.Cost || p.Cost != s.CostOf(p.Nodes) {
			t.Fatalf("seed %d: cost %d, bound %d: %v", seed, p.Cost, p.Bound, err)
		}
	}
	if t.Logf("%d join, %d do not", joined, lost); joined < 200 || lost > joined/20 {
		t.Errorf("%d join, and %d do not though there is room", joined, lost)
	}
}
