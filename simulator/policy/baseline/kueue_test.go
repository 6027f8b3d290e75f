package baseline_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/policy/baseline"
	"github.com/lockstep-project/lockstep/topology"
)

// golden holds the answers of Kueue's own code. The module in conformance documents the fields, and make generate-kueue
// asks again.
type golden struct {
	Kueue string
	Trees []goldenTree
}

type goldenTree struct {
	Levels []string
	Nodes  []struct {
		Name   string
		Values []string
		Free   topology.Capacity
		Barred bool
	}
	Asks []goldenAsk
}

// ledger is the tree in our terms, and the rule that bars pods from each node.
func (g goldenTree) ledger(t *testing.T) (l topology.Ledger, barred []string) {
	t.Helper()
	var levels []topology.Level
	for _, key := range g.Levels {
		levels = append(levels, topology.Level{Name: key, Key: key})
	}
	var nodes []topology.Node
	for _, node := range g.Nodes {
		labels := map[string]string{}
		for i, value := range node.Values {
			labels[g.Levels[i]] = value
		}
		nodes = append(nodes, topology.Node{Name: node.Name, Labels: labels})
	}
	tree, err := topology.NewTree(levels, nodes)
	if err != nil {
		t.Fatal(err)
	}
	l = topology.Ledger{Tree: tree, Free: make([]topology.Capacity, tree.Len())}
	barred = make([]string, tree.Len())
	for _, node := range g.Nodes {
		at, _ := tree.Index(node.Name)
		l.Free[at] = node.Free
		if node.Barred {
			barred[at] = "taint"
		}
	}
	return l, barred
}

type goldenAsk struct {
	Required, Preferred string
	Slice               int
	Home                string
	Pods                int
	Takes               topology.Capacity
	Hosts               []struct {
		Node string
		Pods int
	}
}

func (a goldenAsk) String() string {
	rule := "unconstrained"
	if a.Required != "" {
		rule = "required " + a.Required
	} else if a.Preferred != "" {
		rule = "preferred " + a.Preferred
	}
	return fmt.Sprintf("%d pods, %s, slices of %d in %q", a.Pods, rule, a.Slice, a.Home)
}

// gang is the podset as we ask for it.
func (a goldenAsk) gang(barred []string) topology.Gang {
	return topology.Gang{
		Name: "podset", Required: a.Required, Preferred: a.Preferred,
		Segment: topology.Segment{Size: a.Slice, Level: a.Home},
		Shapes:  []topology.Shape{{Demand: append(topology.Capacity{1}, a.Takes...), Barred: barred}},
		Members: make([]topology.Member, a.Pods),
	}
}

// hosts are the nodes by rank.
func (a goldenAsk) hosts() []string {
	var names []string
	for _, h := range a.Hosts {
		names = append(names, slices.Repeat([]string{h.Node}, h.Pods)...)
	}
	return names
}

func readGolden(t *testing.T) golden {
	t.Helper()
	file, err := os.Open("testdata/kueue.json.gz")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err = json.NewDecoder(packed).Decode(&g); err != nil {
		t.Fatal(err)
	}
	return g
}

// Every placement, and every refusal, is the one that Kueue 0.19 makes.
func TestKueueBestFit_AnswersAsKueueDoes(t *testing.T) {
	g := readGolden(t)
	if len(g.Trees) < 500 {
		t.Fatalf("%d trees in the golden file, want 500 at least", len(g.Trees))
	}
	policy := named(t, baseline.KueueBestFit)
	asked, wrong := 0, 0
	for i, tree := range g.Trees {
		l, barred := tree.ledger(t)
		for _, ask := range tree.Asks {
			asked++
			at, ok := policy.Place(l, ask.gang(barred))
			if got := names(l.Tree, at); ok != (ask.Hosts != nil) || !slices.Equal(got, ask.hosts()) {
				if wrong++; wrong <= 5 {
					t.Errorf("tree %d: %v:\nKueue %v\n ours %v", i, ask, ask.hosts(), got)
				}
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d of %d answers differ from Kueue %s", wrong, asked, g.Kueue)
	}
}

// A preferred level climbs until a domain holds all, and ranks follow label values, in which r10 precedes r9.
func TestKueueBestFit_ClimbsFromPreferredLevel(t *testing.T) {
	l := fleet(t, "block rack", "b1/r9/n1=2/4 b1/r9/n2=2/4 b1/r10/n3=3/4 b2/r1/n4=4 b2/r2/n5=4")
	g := pods(6, 1)
	g.Preferred = "rack"
	want(t, baseline.KueueBestFit, l, g, "n3*3 n1*2 n2")
	g.Preferred, g.Required = "", "rack"
	want(t, baseline.KueueBestFit, l, g, "")
	g.Required = "block"
	want(t, baseline.KueueBestFit, l, g, "n3*3 n1*2 n2")
}

// Without a wish the fullest nodes are filled first, however far from each other they are.
func TestKueueBestFit_UnconstrainedScatters(t *testing.T) {
	l := fleet(t, "rack", "a/n1=1/4 a/n2=4 b/n3=1/4 c/n4=2/4")
	want(t, baseline.KueueBestFit, l, pods(4, 1), "n2*4")
	want(t, baseline.KueueBestFit, l, pods(5, 1), "n1 n2 n3 n4*2")
}

// Nodes that have other levels are another flavor, and those with most levels are tried first.
func TestKueueBestFit_FlavorsByLevels(t *testing.T) {
	l := fleet(t, "block rack", "b1/r1/n1=2 b1/r1/n2=2 b1/-/n3=4 b1/-/n4=4")
	g := pods(4, 1)
	want(t, baseline.KueueBestFit, l, g, "n1*2 n2*2")
	g.Required = "block"
	want(t, baseline.KueueBestFit, l, pods(6, 1), "n3*4 n4*2")
	g = pods(6, 1)
	g.Required = "rack"
	want(t, baseline.KueueBestFit, l, g, "")
}

// Slices need an even division, a level that is there, and one that is not outside the podset's.
func TestKueueBestFit_RefusesUnevenSlices(t *testing.T) {
	l := fleet(t, "block rack", "b1/r1/n1=4 b1/r2/n2=4")
	g := pods(6, 1)
	g.Segment = topology.Segment{Size: 3, Level: "rack"}
	want(t, baseline.KueueBestFit, l, g, "n1*3 n2*3")
	g.Segment.Size = 4
	want(t, baseline.KueueBestFit, l, g, "")
	g.Segment = topology.Segment{Size: 3, Level: "row"}
	want(t, baseline.KueueBestFit, l, g, "")
	g.Segment, g.Required = topology.Segment{Size: 3, Level: "block"}, "rack"
	want(t, baseline.KueueBestFit, l, g, "")
}
