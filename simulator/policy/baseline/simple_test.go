package baseline_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/policy/baseline"
	"github.com/lockstep-project/lockstep/topology"
)

func TestNames(t *testing.T) {
	for _, name := range baseline.Names() {
		d, err := baseline.Describe(name)
		if err != nil || d.Source == "" || d.TieRule == "" || d.Asks == "" || d.Unasked == "" {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		if !slices.Contains(
			[]string{baseline.Greedy, baseline.Strict, baseline.Window, baseline.Evicting},
			d.Discipline,
		) {
			t.Errorf("%s has the discipline %q", name, d.Discipline)
		}
		named(t, name)
	}
	_, err := baseline.New("round-robin", 1)
	if _, also := baseline.Describe("round-robin"); !badinput.Is(err) || !badinput.Is(also) {
		t.Errorf("%v and %v, want bad input", err, also)
	}
}

// People read n2 before n10; distances do not matter.
func TestFirstFit_OrdersNodesByName(t *testing.T) {
	l := fleet(t, "rack", "b/n1=1/4 a/n2=2/4 b/n3=0/4 a/n10=4")
	want(t, baseline.FirstFit, l, pods(4, 1), "n1 n2*2 n10")
	want(t, baseline.FirstFit, l, pods(2, 2), "n2 n10")
	want(t, baseline.FirstFit, l, pods(8, 1), "")
}

// Shapes are taken in rank order, and a full node of one shape is not full for another.
func TestFirstFit_TwoShapes(t *testing.T) {
	l := fleet(t, "rack", "a/n1=1/4 a/n2=4")
	g := pods(3, 2)
	g.Shapes = append(g.Shapes, topology.Shape{Demand: topology.Capacity{1, 0, 0, 1}})
	g.Members[1].Shape = 1
	want(t, baseline.FirstFit, l, g, "n2 n1 n2")
}

func TestPlace_IgnoresRequiredLevels(t *testing.T) {
	l := fleet(t, "rack", "a/n1=1 b/n2=1")
	g := pods(2, 1)
	g.Required = "rack"
	for _, name := range []string{baseline.FirstFit, baseline.LeastAllocated, baseline.MostAllocated} {
		want(t, name, l, g, "n1 n2")
	}
	want(t, baseline.KueueBestFit, l, g, "")
}

// The same nodes under both strategies: an empty one, one that is half full, one that is nearly full.
func TestScores_LeastAndMostAllocated(t *testing.T) {
	l := fleet(t, "rack", "a/n1=8 a/n2=4/8 b/n3=2/8")
	want(t, baseline.LeastAllocated, l, pods(6, 1), "n1*5 n2")
	want(t, baseline.MostAllocated, l, pods(6, 1), "n3*2 n2*4")
	want(t, baseline.MostAllocated, l, pods(2, 8), "")
}

// Scores are means over the nodes' resources, rounded down: cpu counts with weight one, and accelerators only for pods
// that request some.
func TestScores_AreMeansOfResources(t *testing.T) {
	l := fleet(t, "", "n1=8 n2=8")
	l.Total = []topology.Capacity{{110, 16000, 1000, 8}, {110, 16000, 1000, 8}}
	l.Free = []topology.Capacity{{110, 4000, 1000, 8}, {110, 16000, 1000, 2}}
	ask := func(cpu, accelerators int64) topology.Gang {
		g := pods(1, accelerators)
		g.Shapes[0].Demand[1] = cpu
		return g
	}
	// n1: 12 of 16 cores and none of 8 accelerators are taken, n2: no cores and 6 of 8. With 1 core, 1 accelerator
	// more: 81, 0 and 12 are 31 for n1; 6, 0 and 87 are 31 for n2, so the first is taken. With 2 cores, 87 and 12: 33
	// and 12 and 87: 33.
	want(t, baseline.MostAllocated, l, ask(1000, 1), "n1")
	want(t, baseline.LeastAllocated, l, ask(1000, 2), "n1")
	want(t, baseline.MostAllocated, l, ask(4000, 1), "n1")
	want(t, baseline.LeastAllocated, l, ask(1000, 0), "n2")
	want(t, baseline.MostAllocated, l, ask(1000, 0), "n1")
}

// Nodes without known totals count as empty.
func TestScores_WithoutTotals(t *testing.T) {
	l := fleet(t, "", "n1=1 n2=4")
	l.Total = nil
	want(t, baseline.MostAllocated, l, pods(1, 1), "n1")
	want(t, baseline.LeastAllocated, l, pods(1, 1), "n2")
}

// Each feasible node is drawn about as often as the others, and another seed or name draws otherwise.
func TestRandom_IsUniform(t *testing.T) {
	l := fleet(t, "rack", "a/n1=9 a/n2=0/9 a/n3=2/9 b/n4=1/9")
	const asked = 3000
	count := map[string]int{}
	policy := named(t, baseline.Random)
	for i := range asked {
		g := pods(1, 1)
		g.Name = fmt.Sprint("job", i)
		at, ok := policy.Place(l, g)
		if !ok {
			t.Fatal("no place")
		}
		again, _ := policy.Place(l, g)
		if !slices.Equal(at, again) {
			t.Fatalf("%s: %v, then %v", g.Name, at, again)
		}
		count[l.Tree.Node(at[0])]++
	}
	for _, node := range []string{"n1", "n3", "n4"} {
		if c := count[node]; c < asked/3-150 || c > asked/3+150 {
			t.Errorf("%s is drawn %d times of %d", node, c, asked)
		}
	}
	other, err := baseline.New(baseline.Random, 2)
	if err != nil {
		t.Fatal(err)
	}
	g := pods(12, 1)
	first, _ := policy.Place(l, g)
	second, _ := other.Place(l, g)
	if slices.Equal(first, second) {
		t.Errorf("seeds 1 and 2 both draw %v", first)
	}
	want(t, baseline.Random, l, pods(13, 1), "")
}
