package baseline_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/policy/baseline"
	"github.com/lockstep-project/lockstep/topology"
)

// fleet reads levels, outermost first ("rack clique!", with a mark for accelerator domains), and nodes: "a/c1/n1=3/8"
// has 3 of 8 accelerators free, "a/-/n2=8" all of 8 and no label of the second level.
func fleet(tb testing.TB, levels, nodes string) topology.Ledger {
	tb.Helper()
	var ladder []topology.Level
	for name := range strings.FieldsSeq(levels) {
		plain := strings.TrimSuffix(name, "!")
		ladder = append(ladder, topology.Level{Name: plain, Key: "test/" + plain, Accelerator: plain != name})
	}
	free, total := map[string]int64{}, map[string]int64{}
	var all []topology.Node
	for node := range strings.FieldsSeq(nodes) {
		path, amounts, _ := strings.Cut(node, "=")
		values := strings.Split(path, "/")
		n := topology.Node{Name: values[len(values)-1], Labels: map[string]string{}}
		for l, value := range values[:len(values)-1] {
			if value != "-" {
				n.Labels[ladder[l].Key] = value
			}
		}
		all = append(all, n)
		left, whole, both := strings.Cut(amounts, "/")
		free[n.Name] = number(tb, left)
		if total[n.Name] = free[n.Name]; both {
			total[n.Name] = number(tb, whole)
		}
	}
	tree, err := topology.NewTree(ladder, all)
	if err != nil {
		tb.Fatal(err)
	}
	l := topology.Ledger{Tree: tree}
	for i := range all {
		name := tree.Node(i)
		l.Free = append(l.Free, topology.Capacity{110, 0, 0, free[name]})
		l.Total = append(l.Total, topology.Capacity{110, 0, 0, total[name]})
	}
	return l
}

func number(tb testing.TB, text string) int64 {
	tb.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// pods is a gang of so many that take so many accelerators each.
func pods(count int, accelerators int64) topology.Gang {
	return topology.Gang{
		Name:    "job",
		Members: make([]topology.Member, count),
		Shapes:  []topology.Shape{{Demand: topology.Capacity{1, 0, 0, accelerators}}},
	}
}

func named(tb testing.TB, name string) baseline.Policy {
	tb.Helper()
	policy, err := baseline.New(name, 1)
	if err != nil {
		tb.Fatal(err)
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

// ranks reads nodes by rank: "n1 n2*3" is n1, and three times n2.
func ranks(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	for part := range strings.FieldsSeq(text) {
		node, times, several := strings.Cut(part, "*")
		if !several {
			times = "1"
		}
		out = append(out, slices.Repeat([]string{node}, int(number(t, times)))...)
	}
	return out
}

// want holds a placement against nodes as ranks reads them, "" for none.
func want(t *testing.T, policy string, l topology.Ledger, g topology.Gang, nodes string) {
	t.Helper()
	at, ok := named(t, policy).Place(l, g)
	if got := names(l.Tree, at); ok != (nodes != "") || !slices.Equal(got, ranks(t, nodes)) {
		t.Errorf("%s places %v, want %q", policy, got, nodes)
	}
}
