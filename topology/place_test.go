package topology_test

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/topologytest"
)

// draw makes a scene from two drawn numbers. Drawing every choice would shrink better, but rapid favors small choices so
// much that few gangs would need more than one node; scenes are small enough to read as they are.
func draw(t *rapid.T, shapes int) topologytest.Scene {
	seed := rapid.Uint64()
	return topologytest.Draw(shapes, rand.New(rand.NewPCG(seed.Draw(t, "seed"), seed.Draw(t, "stream"))).IntN)
}

// placed draws scenes until the gang has a place, so that promises about placements are not tested on refusals.
func placed(t *rapid.T, shapes int) (topologytest.Scene, topology.Placement) {
	s := draw(t, shapes)
	p, short := s.Place()
	if short != nil {
		t.Skip("no place")
	}
	return s, p
}

func TestP1TakesOnlyWhatIsFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := placed(t, 3)
		if len(p.Nodes) != len(s.Gang.Members) {
			t.Fatalf("%s\n%d of %d members are placed", s, len(p.Nodes), len(s.Gang.Members))
		}
		if err := s.Check(p.Nodes); err != nil {
			t.Fatalf("%s\nplaced on %v: %v", s, p.Nodes, err)
		}
	})
}

func TestP2StaysInOneRequiredDomain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := placed(t, 3)
		if s.Gang.Required == "" {
			t.Skip("nothing required")
		}
		level := slices.IndexFunc(s.Levels, func(l topology.Level) bool { return l.Name == s.Gang.Required })
		first, _ := s.Group(p.Nodes[0], level)
		for _, n := range p.Nodes {
			if group, ok := s.Group(n, level); !ok || group != first {
				t.Fatalf("%s\n%v leaves %s for %s", s, p.Nodes, first, group)
			}
		}
	})
}

func TestP3FindsAPlaceIfThereIsOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, 1)
		if _, short := s.Place(); (short == nil) != s.Exhaustive() {
			t.Fatalf("%s\nshortfall: %v", s, short)
		}
	})
}

// For several shapes only the reverse holds always. How often a place is missed is bounded here, over scenes that are
// the same in every run, so that it is noticed when it grows.
func TestP3SeveralShapesSeldomMiss(t *testing.T) {
	tried, missed := 0, 0
	for seed := range uint64(3000) {
		s := topologytest.Draw(3, rand.New(rand.NewPCG(seed, 0)).IntN)
		_, short := s.Place()
		if !s.Exhaustive() {
			if short == nil {
				t.Fatalf("%s\nplaced though there is no place", s)
			}
			continue
		}
		tried++
		if short != nil {
			missed++
		}
	}
	if t.Logf("missed %d of %d places", missed, tried); missed*300 > tried {
		t.Error("that is too many")
	}
}

func TestP4TakesTheSmallestSufficientDomain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := placed(t, 1)
		level, slots, ok := s.Smallest()
		if !ok {
			t.Fatalf("%s\nplaced though nothing is large enough", s)
		}
		var inside []int
		for _, nodes := range s.Domains(level) {
			if slices.Contains(nodes, p.Nodes[0]) {
				inside = nodes
			}
		}
		for _, n := range p.Nodes {
			if !slices.Contains(inside, n) {
				t.Fatalf("%s\n%v is not inside one domain of level %d", s, p.Nodes, level)
			}
		}
		if s.Slots(inside...) != slots {
			t.Fatalf("%s\n%v is in a domain of %d slots, there is one of %d", s, p.Nodes, s.Slots(inside...), slots)
		}
	})
}

func TestP5UsesTheFewestDomains(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := placed(t, 1)
		level := len(p.Within.Path)
		var inside []int
		for _, nodes := range s.Domains(level - 1) {
			if slices.Contains(nodes, p.Nodes[0]) {
				inside = nodes
			}
		}
		if err := s.Fewest(p.Nodes, inside, level); err != nil {
			t.Fatalf("%s\nplaced on %v: %v", s, p.Nodes, err)
		}
	})
}

func TestP6RanksFollowThePath(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, p := placed(t, 1)
		tree := topology.NewTree(s.Levels, s.Nodes)
		if !slices.IsSortedFunc(names(s, p), func(a, b string) int {
			i, _ := tree.Index(a)
			j, _ := tree.Index(b)
			return i - j
		}) {
			t.Fatalf("%s\nranks on %v are not in tree order", s, names(s, p))
		}
		for l := range s.Levels {
			groups := make(map[string]bool)
			for _, n := range p.Nodes {
				group, _ := s.Group(n, l)
				groups[group] = true
			}
			if p.Used[l] != len(groups) {
				t.Fatalf("%s\n%v uses %d domains of level %d, not %d", s, p.Nodes, len(groups), l, p.Used[l])
			}
			want := p.Used[l]
			if want == 1 {
				want = 0
			}
			if got := s.Crossings(p.Nodes, l); got != want {
				t.Fatalf("%s\na ring over %v crosses level %d %d times, not %d", s, p.Nodes, l, got, want)
			}
		}
	})
}

func TestP7OrderAndOtherLabelsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, 3)
		order := make([]int, len(s.Nodes))
		for i := range order {
			order[i] = i
		}
		other := s.Shuffled(rapid.Permutation(order).Draw(t, "order"))
		for i, n := range other.Nodes {
			other.Nodes[i].Labels = maps.Clone(n.Labels)
			other.Nodes[i].Labels["kubernetes.io/hostname"] = n.Name
		}
		p, short := s.Place()
		q, otherShort := other.Place()
		if diff := cmp.Diff(names(s, p), names(other, q)); diff != "" {
			t.Fatalf("%s\nplacement differs (-given +shuffled):\n%s", s, diff)
		}
		p.Nodes, q.Nodes = nil, nil
		if diff := cmp.Diff(p, q) + cmp.Diff(short, otherShort); diff != "" {
			t.Fatalf("%s\nanswer differs (-given +shuffled):\n%s", s, diff)
		}
	})
}

func names(s topologytest.Scene, p topology.Placement) []string {
	found := make([]string, len(p.Nodes))
	for i, n := range p.Nodes {
		found[i] = s.Nodes[n].Name
	}
	return found
}

func TestP8ShortfallsAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, 3)
		_, short := s.Place()
		if short == nil {
			t.Skip("placed")
		}
		total := short.Outside + short.Full + short.Open
		for _, r := range short.Barred {
			total += r.Nodes
		}
		if total != len(s.Nodes) {
			t.Fatalf("%s\n%+v speaks of %d nodes", s, short, total)
		}
		level := slices.IndexFunc(s.Levels, func(l topology.Level) bool { return l.Name == s.Gang.Required })
		domains := s.Domains(level)
		if want := min(len(domains), 3); len(short.Nearest) != want {
			t.Fatalf("%s\n%+v lists %d domains, not %d", s, short, len(short.Nearest), want)
		}
		best := 0
		for _, nodes := range domains {
			best = max(best, s.Slots(nodes...))
		}
		for i, near := range short.Nearest {
			if near.Holds >= len(s.Gang.Members) || i > 0 && near.Holds > short.Nearest[i-1].Holds {
				t.Fatalf("%s\n%+v: nearest domains are wrong", s, short)
			}
		}
		if len(s.Gang.Shapes) == 1 && len(domains) > 0 && short.Nearest[0].Holds != best {
			t.Fatalf("%s\n%+v: the nearest domain holds %d", s, short, best)
		}
	})
}

// The capacities that arithmetic could stumble over.
func extremes() []int64 { return []int64{math.MinInt64, -1, 0, 1, 3, 1 << 40, math.MaxInt64} }

func FuzzPlace(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		choose := func(n int) int {
			if len(data) == 0 {
				return 0
			}
			c := int(data[0]) % n
			data = data[1:]
			return c
		}
		s := topologytest.Draw(3, choose)
		tree := topology.NewTree(s.Levels, s.Nodes)
		for range choose(4) {
			tree = spoil(&s, tree, choose)
		}
		p, short := topology.Place(tree, s.Free, s.Gang)
		if short != nil {
			if text := short.String(); text == "" || strings.ContainsAny(text, "\n\r") {
				t.Errorf("shortfall is not one line: %q", text)
			}
			return
		}
		if len(p.Nodes) != len(s.Gang.Members) {
			t.Errorf("%s\nplaced on %v", s, p.Nodes)
		}
	})
}

// spoil makes one mistake that a caller could make.
func spoil(s *topologytest.Scene, tree *topology.Tree, choose func(int) int) *topology.Tree {
	extreme := extremes()[choose(len(extremes()))]
	node, shape := choose(len(s.Nodes)), choose(len(s.Gang.Shapes))
	switch choose(10) {
	case 0:
		s.Free = s.Free[:max(0, len(s.Free)-1)]
	case 1:
		s.Free = append(s.Free, nil)
	case 2:
		s.Gang.Members = append(s.Gang.Members, topology.Member{Name: "lost\n", Shape: choose(9) - 4})
	case 3:
		s.Gang.Shapes[shape].Barred = []string{"rule\nof two lines"}
	case 4:
		s.Gang.Shapes[shape].Demand = topology.Capacity{extreme, 1, 1}
	case 5:
		if node < len(s.Free) {
			s.Free[node] = topology.Capacity{extreme}
		}
	case 6:
		s.Gang.Required = "nothing\nlike it"
	case 7:
		return nil
	case 8:
		return new(topology.Tree)
	case 9:
		s.Gang.Members = nil
	}
	return tree
}

func TestP9FaultsAreNamed(t *testing.T) {
	tree := topology.NewTree(nil, []topology.Node{{Name: "a"}, {Name: "b"}})
	free := []topology.Capacity{{1}, {1}}
	one := []topology.Member{{Name: "m"}}
	for name, c := range map[string]struct {
		free []topology.Capacity
		gang topology.Gang
		want topology.Fault
	}{
		"short free":     {free[:1], topology.Gang{Members: one, Shapes: []topology.Shape{{}}}, topology.FaultFree},
		"no shape":       {free, topology.Gang{Members: one}, topology.FaultShape},
		"negative shape": {free, topology.Gang{Members: []topology.Member{{Shape: -1}}, Shapes: []topology.Shape{{}}}, topology.FaultShape},
		"short barred":   {free, topology.Gang{Members: one, Shapes: []topology.Shape{{Barred: []string{""}}}}, topology.FaultBarred},
		"negative":       {free, topology.Gang{Members: one, Shapes: []topology.Shape{{Demand: topology.Capacity{-1}}}}, topology.FaultDemand},
	} {
		t.Run(name, func(t *testing.T) {
			_, short := topology.Place(tree, c.free, c.gang)
			if short == nil || short.Fault != c.want {
				t.Errorf("shortfall %+v, want fault %q", short, c.want)
			}
		})
	}
}
