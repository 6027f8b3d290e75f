package baseline_test

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/baseline"
	"github.com/lockstep-project/lockstep/topology"
)

// golden is what Kueue's own code answered. The types say what the fields mean: see the module in conformance, and
// make generate-kueue.
type golden struct {
	Kueue string
	Trees []struct {
		Levels []string
		Nodes  []struct {
			Name   string
			Values []string
			Free   topology.Capacity
			Barred bool
		}
		Asks []goldenAsk
	}
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
func TestKueueAnswersAsKueueDoes(t *testing.T) {
	g := readGolden(t)
	if len(g.Trees) < 500 {
		t.Fatalf("%d trees in the golden file, want 500 at least", len(g.Trees))
	}
	policy := named(t, baseline.KueueBestFit)
	wrong := 0
	for i, tree := range g.Trees {
		levels := make([]topology.Level, len(tree.Levels))
		for l, key := range tree.Levels {
			levels[l] = topology.Level{Name: key, Key: key}
		}
		nodes := make([]topology.Node, len(tree.Nodes))
		for n, node := range tree.Nodes {
			nodes[n] = topology.Node{Name: node.Name, Labels: map[string]string{}}
			for l, value := range node.Values {
				nodes[n].Labels[tree.Levels[l]] = value
			}
		}
		made, err := topology.NewTree(levels, nodes)
		if err != nil {
			t.Fatal(err)
		}
		ledger := topology.Ledger{Tree: made, Free: make([]topology.Capacity, made.Len())}
		barred := make([]string, made.Len())
		for _, node := range tree.Nodes {
			at, _ := made.Index(node.Name)
			ledger.Free[at] = node.Free
			if node.Barred {
				barred[at] = "taint"
			}
		}
		for _, ask := range tree.Asks {
			gang := topology.Gang{
				Name: "podset", Required: ask.Required, Preferred: ask.Preferred,
				Segment: topology.Segment{Size: ask.Slice, Level: ask.Home},
				Shapes:  []topology.Shape{{Demand: append(topology.Capacity{1}, ask.Takes...), Barred: barred}},
				Members: make([]topology.Member, ask.Pods),
			}
			at, ok := policy.Place(ledger, gang)
			if got := names(made, at); ok != (ask.Hosts != nil) || !slices.Equal(got, ask.hosts()) {
				wrong++
				if wrong <= 5 {
					t.Errorf("tree %d: %v:\nKueue %v\n ours %v", i, ask, ask.hosts(), got)
				}
			}
		}
	}
	if wrong > 0 {
		t.Errorf("%d answers differ from Kueue %s", wrong, g.Kueue)
	}
}

func named(t testing.TB, name string) baseline.Policy {
	t.Helper()
	policy, err := baseline.New(name, 1)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

func names(tree *topology.Tree, nodes []int) []string {
	var out []string
	for _, n := range nodes {
		out = append(out, tree.Node(n))
	}
	return out
}
