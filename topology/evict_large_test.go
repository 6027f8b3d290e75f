package topology_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

// withLauncher is a gang of workers that take a node each and of one launcher that takes other memory: counts do not
// tell whether it fits.
func withLauncher(workers int) topology.Gang {
	g := gangOf(workers + 1)
	g.Shapes = append(g.Shapes, topology.Shape{Demand: topology.Capacity{1, 1}})
	g.Members[0].Shape = 1
	return g
}

// fullOf returns a fleet without levels in which a job holds each node, and the jobs.
func fullOf(tb testing.TB, nodes int) (topology.Ledger, []topology.Running) {
	tb.Helper()
	tree, err := topology.NewTree(nil, shape{}.fleet(nodes))
	if err != nil {
		tb.Fatal(err)
	}
	l := topology.Ledger{Tree: tree, Free: make([]topology.Capacity, nodes)}
	var running []topology.Running
	for i := range l.Free {
		l.Free[i] = topology.Capacity{0, 0}
		running = append(running, topology.Running{
			Name: fmt.Sprint("job-", i), Cost: 10, Holds: []topology.Held{{Node: i, Demand: topology.Capacity{1, 1}}},
		})
	}
	return l, running
}

// So many tests of a large fleet exceed the effort: not every victim that was chosen can be tried to stay.
func TestEvict_NoMoreVictimsThanNodes(t *testing.T) {
	l, running := fullOf(t, 4096)
	g := withLauncher(400)
	e, short, err := topology.Evict(l, g, running)
	if short != nil || err != nil {
		t.Fatal(short, err)
	}
	if want := len(g.Members); len(e.Victims) != want || e.Cost != int64(10*want) {
		t.Errorf("%d victims at %d, want %d at %d", len(e.Victims), e.Cost, want, 10*want)
	}
}

// The dearest of the victims that suffice are the last ones: the search returns to the first that do.
func TestEvict_CheapestFirstPartOfThePath(t *testing.T) {
	l, running := fullOf(t, 4096)
	want := int64(0)
	for i := range running {
		running[i].Cost = int64(10 + i)
	}
	slices.Reverse(running) // the cheap ones are not the first by index
	g := withLauncher(400)
	for i := range g.Members {
		want += int64(10 + i)
	}
	e, short, err := topology.Evict(l, g, running)
	if short != nil || err != nil || e.Cost != want {
		t.Errorf("victims cost %d, want %d: %v %v", e.Cost, want, short, err)
	}
}

// Idle pods beside full nodes cost nothing, so the first set of victims has all of them, and none is needed.
func BenchmarkEvictBesideIdlePods(b *testing.B) {
	for _, nodes := range []int{250, 1000, 4000} {
		l, running := fullOf(b, nodes)
		for i := range 3 * nodes {
			running = append(running, topology.Running{
				Name: fmt.Sprint("pod-", i), Holds: []topology.Held{{Node: i % nodes, Demand: topology.Capacity{0, 1}}},
			})
		}
		g := gangOf(64)
		g.Shapes[0].Demand = topology.Capacity{1, 4}
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			for b.Loop() {
				if e, short, err := topology.Evict(l, g, running); short != nil || err != nil || e.Cost != 640 {
					b.Fatal(e.Cost, short, err)
				}
			}
		})
	}
}
