package topology_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/topology"
)

// smallTree has a node for every way to lack a label, in the wrong order.
func smallTree(t *testing.T) *topology.Tree {
	t.Helper()
	node := func(name, block, rack string) topology.Node {
		labels := map[string]string{"other": "x"}
		if block != "" {
			labels["test/block"] = block
		}
		if rack != "-" {
			labels["test/rack"] = rack
		}
		return topology.Node{Name: name, Labels: labels}
	}
	tree, err := topology.NewTree(
		[]topology.Level{{Name: "block", Key: "test/block"}, {Name: "rack", Key: "test/rack"}},
		[]topology.Node{
			node("bare", "", "-"), node("tray-10", "b2", "r1"), node("gap", "", "r1"), node("tray-2", "b2", "r1"),
			node("tray-02", "b2", "r1"), node("outside", "b2", ""), node("b10", "b10", "r1"), node("late", "b2", "r10"),
			node("early", "b2", "r9"),
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestTree_Order(t *testing.T) {
	tree := smallTree(t)
	var got []string
	for i := range tree.Len() {
		words := []string{tree.Node(i)}
		for l := range tree.Levels() {
			if d, ok := tree.Domain(i, l); ok {
				words = append(words, d.Level.Name+"="+d.String())
			}
		}
		if at, ok := tree.Index(tree.Node(i)); !ok || at != i {
			t.Errorf("Index(%s) = %d, %t", tree.Node(i), at, ok)
		}
		got = append(got, strings.Join(words, " "))
	}
	want := []string{
		"tray-02 block=b2 rack=b2/r1",
		"tray-2 block=b2 rack=b2/r1",
		"tray-10 block=b2 rack=b2/r1",
		"early block=b2 rack=b2/r9",
		"late block=b2 rack=b2/r10",
		"outside block=b2",
		"b10 block=b10 rack=b10/r1",
		"gap rack=-/r1",
		"bare",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
}

func TestTree_Lookups(t *testing.T) {
	tree := smallTree(t)
	for name, want := range map[string]int{"block": 0, "test/block": 0, "rack": 1, "test/rack": 1} {
		if l, ok := tree.Level(name); !ok || l != want {
			t.Errorf("Level(%s) = %d, %t", name, l, ok)
		}
	}
	for _, name := range []string{"", "cage"} {
		if l, ok := tree.Level(name); ok {
			t.Errorf("Level(%q) = %d", name, l)
		}
	}
	for l, want := range []string{"gap bare", "outside bare"} {
		if got := strings.Join(tree.Unlabelled(l), " "); got != want {
			t.Errorf("Unlabelled(%d) = %s, want %s", l, got, want)
		}
	}
	if _, ok := tree.Index("nobody"); ok {
		t.Error("found a node that is not there")
	}
	for _, at := range [][2]int{{-1, 0}, {9, 0}, {0, -1}, {0, 3}} {
		if d, ok := tree.Domain(at[0], at[1]); ok {
			t.Errorf("Domain%v = %v", at, d)
		}
	}
}

// The tree never changes: neither through the values that it returns, nor when the caller reuses its arguments.
func TestTree_IsImmutable(t *testing.T) {
	levels := []topology.Level{{Name: "rack", Key: "test/rack"}}
	nodes := []topology.Node{{Name: "a", Labels: map[string]string{"test/rack": "r1"}}}
	tree, err := topology.NewTree(levels, nodes)
	if err != nil {
		t.Fatal(err)
	}
	levels[0].Name = "changed"
	nodes[0].Labels["test/rack"] = "changed"
	tree.Levels()[0].Name = "changed"
	d, _ := tree.Domain(0, 0)
	d.Path[0] = "changed"
	if d, _ := tree.Domain(0, 0); d.String() != "r1" || d.Level.Name != "rack" {
		t.Errorf("the tree changed: %v", d)
	}
}

func TestTree_Together(t *testing.T) {
	tree, err := topology.NewTree([]topology.Level{{Name: "zone", Key: "z"}, {Name: "rack", Key: "r"}}, []topology.Node{
		{Name: "a", Labels: map[string]string{"z": "1", "r": "1"}},
		{Name: "b", Labels: map[string]string{"z": "1", "r": "2"}},
		{Name: "c", Labels: map[string]string{"z": "2", "r": "1"}},
		{Name: "d", Labels: map[string]string{"z": "1", "r": "1"}},
		{Name: "e", Labels: map[string]string{"r": "1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	names := func(node string, level int) string {
		at, _ := tree.Index(node)
		var out []string
		for _, i := range tree.Together(at, level) {
			out = append(out, tree.Node(i))
		}
		return strings.Join(out, " ")
	}
	for _, test := range []struct {
		node  string
		level int
		want  string
	}{
		{"a", 0, "a d b"}, {"b", 1, "b"}, {"d", 1, "a d"}, {"c", 0, "c"}, {"c", 2, "c"}, {"e", 0, ""}, {"a", 7, ""},
	} {
		if got := names(test.node, test.level); got != test.want {
			t.Errorf("with %s at level %d are %q, want %q", test.node, test.level, got, test.want)
		}
	}
}
