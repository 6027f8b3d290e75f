package topology_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

// stalls fills a fleet of racks of 16 with gangs of up to 32 whole nodes, in path order but for every seventh node.
func stalls(tb testing.TB, nodes, gangs int) (topology.Ledger, []topology.Running) {
	tb.Helper()
	s := shape{"racks", yardLevels(), []int{16, 16}, 1}
	t, err := topology.NewTree(s.levels, s.fleet(nodes))
	if err != nil {
		tb.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	l := topology.Ledger{Tree: t, Free: make([]topology.Capacity, nodes)}
	running := make([]topology.Running, gangs)
	for i := range l.Free {
		gang := (i*gangs/nodes + random.IntN(2)) % gangs
		if i%7 == 0 {
			gang = random.IntN(gangs)
		}
		l.Free[i] = topology.Capacity{0}
		running[gang].Holds = append(running[gang].Holds, topology.Held{Node: i, Demand: topology.Capacity{1}})
	}
	for i := range running {
		running[i].Name = fmt.Sprint("gang-", i)
		running[i].Cost = int64(len(running[i].Holds)) * int64(60+random.IntN(5000))
	}
	return l, running
}

func BenchmarkEvict(b *testing.B) {
	for _, size := range [][2]int{{512, 100}, {16384, 1000}} {
		l, running := stalls(b, size[0], size[1])
		even := slices.Clone(running)
		for i := range even {
			even[i].Cost = int64(len(even[i].Holds)) * 60
		}
		for _, c := range []struct {
			name string
			gang func() topology.Gang
			even bool
		}{
			{"rack", func() topology.Gang { g := gangOf(12); g.Required = "rack"; return g }, false},
			{"rack-even", func() topology.Gang { g := gangOf(12); g.Required = "rack"; return g }, true},
			{"block", func() topology.Gang { g := gangOf(100); g.Required = "block"; return g }, false},
			{"anywhere", func() topology.Gang { return gangOf(size[0] / 4) }, false},
			{"anywhere-even", func() topology.Gang { return gangOf(size[0] / 4) }, true},
			{"segments", func() topology.Gang {
				g := gangOf(size[0] / 8)
				g.Segment = topology.Segment{Size: 8, Level: "rack"}
				return g
			}, false},
			{"short-segment", func() topology.Gang {
				g := gangOf(size[0]/8 + 3)
				g.Segment = topology.Segment{Size: 8, Level: "rack"}
				return g
			}, false},
			{"two-kinds", func() topology.Gang {
				g := gangOf(100)
				g.Required = "block"
				g.Shapes = append(g.Shapes, topology.Shape{Demand: topology.Capacity{0}})
				g.Members[0].Shape = 1
				return g
			}, false},
			{"two-kinds-anywhere", func() topology.Gang {
				g := gangOf(100)
				g.Shapes = append(g.Shapes, topology.Shape{Demand: topology.Capacity{0}})
				g.Members[0].Shape = 1
				return g
			}, false},
			{"node", func() topology.Gang { g := gangOf(1); g.Required = topology.LevelNode; return g }, false},
		} {
			b.Run(fmt.Sprintf("nodes=%d/running=%d/gang=%s", size[0], size[1], c.name), func(b *testing.B) {
				g, who := c.gang(), running
				if c.even {
					who = even
				}
				b.ReportAllocs()
				gap := 0.0
				for b.Loop() {
					e, short, err := topology.Evict(l, g, who)
					if short != nil || err != nil {
						b.Fatal(short, err)
					}
					gap = float64(e.Cost-e.Bound) / float64(max(e.Bound, 1))
				}
				b.ReportMetric(100*gap, "gap-%")
			})
		}
	}
}
