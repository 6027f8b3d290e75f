package topology_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/topology"
)

// shape is a fleet's form: the number of domains of each level in one of the level before it, and of members that a
// node holds.
type shape struct {
	name    string
	levels  []topology.Level
	fan     []int // the outermost level has as many domains as the nodes need
	perNode int
}

// shapes are those of the clusters C1 to C3 of simulator/inputs/fleet/fleets and, last, one without two racks that are
// alike.
func shapes() []shape {
	level := func(name string, weight int64) topology.Level {
		return topology.Level{Name: name, Key: "test/" + name, Weight: weight}
	}
	return []shape{
		{"c1", []topology.Level{level("pod", 50), level("unit", 50)}, []int{4, 32}, 1},
		{"c2", []topology.Level{level("pod", 580), level("rack", 20)}, []int{192, 2}, 1},
		{"c3", []topology.Level{level("su", 400), level("leaf", 400), level("clique", 700)}, []int{2, 4, 18}, 1},
		{"differ", []topology.Level{level("block", 50), level("rack", 50)}, []int{16, 16}, 4},
	}
}

// fleet is an empty fleet of the shape.
func (s shape) fleet(nodes int) []topology.Node {
	all := make([]topology.Node, nodes)
	for i := range all {
		all[i] = topology.Node{Name: fmt.Sprintf("n-%d", i), Labels: map[string]string{}}
		at := i
		for l, level := range slices.Backward(s.levels) {
			at /= s.fan[l]
			all[i].Labels[level.Key] = fmt.Sprintf("%s-%d", level.Name, at)
		}
	}
	return all
}

// state takes about half of everything away: nodes at random, or of nodes that hold several members some places.
func (s shape) state(t *topology.Tree, seed uint64) topology.Ledger {
	random := rand.New(rand.NewPCG(seed, 0))
	l := topology.Ledger{Tree: t, Free: make([]topology.Capacity, t.Len())}
	for i := range l.Free {
		l.Free[i] = topology.Capacity{int64(random.IntN(s.perNode + 1)), 64000, 1 << 40, 110}
	}
	return l
}

func (s shape) tree(b *testing.B, nodes int) *topology.Tree {
	b.Helper()
	t, err := topology.NewTree(s.levels, s.fleet(nodes))
	if err != nil {
		b.Fatal(err)
	}
	return t
}

func workers(members int) topology.Gang {
	g := topology.Gang{Name: "train", Shapes: []topology.Shape{{Demand: topology.Capacity{1, 3200, 1 << 34, 1}}}}
	for m := range members {
		g.Members = append(g.Members, topology.Member{Name: fmt.Sprintf("worker-%d", m)})
	}
	return g
}

// sizes yields every fleet, and the number of members to place on it.
func sizes(b *testing.B, gangs func(nodes int) []int, run func(*testing.B, shape, *topology.Tree, int)) {
	b.Helper()
	for _, s := range shapes() {
		for _, nodes := range []int{1024, 4096, 16384, 65536} {
			t := s.tree(b, nodes)
			t.Nested() // builds the lazily made layouts
			for _, gang := range gangs(nodes) {
				b.Run(fmt.Sprintf("nodes=%d/gang=%d/fleet=%s", nodes, gang, s.name), func(b *testing.B) {
					b.ReportAllocs()
					run(b, s, t, gang)
				})
			}
		}
	}
}

func quarter(nodes int) []int { return []int{nodes / 4} }

// keepAsking asks until the time is up.
func keepAsking(b *testing.B, l topology.Ledger, g topology.Gang) {
	b.Helper()
	for b.Loop() {
		if _, short, err := topology.Place(l, g); short != nil || err != nil {
			b.Fatal(short, err)
		}
	}
}

func BenchmarkPlace(b *testing.B) {
	few := func(nodes int) []int { return []int{8, nodes / 16, nodes / 4} }
	sizes(b, few, func(b *testing.B, s shape, t *topology.Tree, gang int) {
		b.Helper()
		keepAsking(b, s.state(t, 1), workers(gang))
	})
}

// The slowest of many random states: run with -benchtime 10000x. Each state is another fleet of the same form, half
// full.
func BenchmarkPlaceStates(b *testing.B) {
	const nodes, gang = 16384, 4096
	for _, s := range shapes() {
		t, g := s.tree(b, nodes), workers(gang)
		t.Nested()
		b.Run(fmt.Sprintf("nodes=%d/gang=%d/fleet=%s", nodes, gang, s.name), func(b *testing.B) {
			var took []float64
			for seed := uint64(0); b.Loop(); seed++ {
				l := s.state(t, seed)
				start := time.Now()
				if _, short, err := topology.Place(l, g); short != nil || err != nil {
					b.Fatal(short, err)
				}
				took = append(took, float64(time.Since(start).Microseconds())/1000)
			}
			slices.Sort(took)
			b.ReportMetric(took[len(took)/2], "p50-ms")
			b.ReportMetric(took[len(took)*99/100], "p99-ms")
			b.ReportMetric(took[len(took)-1], "max-ms")
		})
	}
}

// launched is workers with a launcher before them, of another kind.
func launched(members int) topology.Gang {
	g := workers(members)
	g.Shapes = append(g.Shapes, topology.Shape{Demand: topology.Capacity{0, 1000, 1 << 30, 1}})
	g.Members[0].Shape = 1
	return g
}

func BenchmarkPlaceLaunched(b *testing.B) {
	few := func(nodes int) []int { return []int{64, nodes / 16, nodes / 4} }
	sizes(b, few, func(b *testing.B, s shape, t *topology.Tree, gang int) {
		b.Helper()
		keepAsking(b, s.state(t, 1), launched(gang))
	})
}

func BenchmarkPlaceAllToAll(b *testing.B) {
	few := func(nodes int) []int { return []int{64, nodes / 16, nodes / 4} }
	sizes(b, few, func(b *testing.B, s shape, t *topology.Tree, gang int) {
		b.Helper()
		g := workers(gang)
		g.Communication = topology.AllToAll
		keepAsking(b, s.state(t, 1), g)
	})
}

func BenchmarkPlaceSegments(b *testing.B) {
	sizes(b, quarter, func(b *testing.B, s shape, t *topology.Tree, gang int) {
		b.Helper()
		g := workers(gang)
		g.Segment = topology.Segment{Size: 4, Level: s.levels[0].Name}
		keepAsking(b, s.state(t, 1), g)
	})
}

func BenchmarkShortfall(b *testing.B) {
	sizes(b, quarter, func(b *testing.B, s shape, t *topology.Tree, gang int) {
		b.Helper()
		keepRefusing(b, s, t, workers(gang))
	})
}

func BenchmarkShortfallLaunched(b *testing.B) {
	sizes(b, quarter, func(b *testing.B, s shape, t *topology.Tree, gang int) {
		b.Helper()
		keepRefusing(b, s, t, launched(gang))
	})
}

// keepRefusing requests a domain of the innermost level, where none holds so many.
func keepRefusing(b *testing.B, s shape, t *topology.Tree, g topology.Gang) {
	b.Helper()
	l := s.state(t, 1)
	g.Required = s.levels[len(s.levels)-1].Name
	for b.Loop() {
		if _, short, err := topology.Place(l, g); short == nil || err != nil {
			b.Fatal("placed", err)
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, nodes := range []int{1024, 4096, 16384, 65536, 100_000} {
		s := shapes()[2]
		all := s.fleet(nodes)
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				t, err := topology.NewTree(s.levels, all)
				if err != nil {
					b.Fatal(err)
				}
				t.Nested()
			}
		})
	}
}

// A node changes its clique and changes back; every other time it is removed and added again.
func BenchmarkUpdate(b *testing.B) {
	for _, nodes := range []int{1024, 4096, 16384, 65536, 100_000} {
		s := shapes()[2]
		t := s.tree(b, nodes)
		here := s.fleet(nodes)[nodes/2]
		there := topology.Node{Name: here.Name, Labels: maps.Clone(here.Labels)}
		there.Labels[s.levels[2].Key] = "another"
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				switch i % 4 {
				case 0:
					t = t.With(there)
				case 1:
					t = t.With(here)
				case 2:
					t = t.Without(here.Name)
				case 3:
					t = t.With(here)
				}
			}
		})
	}
}
