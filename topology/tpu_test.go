package topology_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

// cubes are two cubes of two halves of one host each, the first cube in the given state.
func cubes(t *testing.T, state string) *topology.Tree {
	t.Helper()
	const key = "cloud.google.com/gke-tpu-partition-"
	var nodes []topology.Node
	for _, name := range []string{"a1", "a2", "b1", "b2"} {
		labels := map[string]string{
			key + "4x4x4-id":    name[:1],
			key + "4x4x4-state": "HEALTHY",
			key + "2x4x4-id":    name,
			key + "2x4x4-state": "HEALTHY",
		}
		if name[:1] == "a" {
			labels[key+"4x4x4-state"] = state
		}
		nodes = append(nodes, topology.Node{Name: name, Labels: labels})
	}
	tree, err := topology.NewTree(topology.DetectLevels(nodes), nodes)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// pair requests hosts in one domain of a level; cube b is taken.
func pair(t *testing.T, tree *topology.Tree, members int, level string) *topology.Shortfall {
	t.Helper()
	gang := topology.Gang{
		Name: "g", Members: make([]topology.Member, members), Required: level,
		Shapes: []topology.Shape{{Demand: topology.Capacity{4}}},
	}
	free := make([]topology.Capacity, tree.Len())
	for name, chips := range map[string]int64{"a1": 4, "a2": 4, "b1": 0, "b2": 0} {
		at, ok := tree.Index(name)
		if !ok {
			t.Fatalf("no node %s", name)
		}
		free[at] = topology.Capacity{chips}
	}
	_, short, err := topology.Place(topology.Ledger{Tree: tree, Free: free}, gang)
	if err != nil {
		t.Fatal(err)
	}
	return short
}

func TestPartition_OnlyHealthyOnesHoldASlice(t *testing.T) {
	for _, state := range []string{"HEALTHY", ""} {
		if short := pair(t, cubes(t, state), 2, "tpu-4x4x4"); short != nil {
			t.Errorf("state %q: %s", state, short)
		}
	}
	for _, state := range []string{"DEGRADED", "UNHEALTHY", "INCOMPLETE", "UNSET", "healthy"} {
		short := pair(t, cubes(t, state), 2, "tpu-4x4x4")
		const want = "2 nodes outside every tpu-4x4x4 (no label, or the partition is not HEALTHY)"
		if short == nil || !strings.Contains(short.String(), want) {
			t.Errorf("state %q: got %v, want %s", state, short, want)
		}
	}
}

func TestPartition_PartsOfADegradedCubeStayUsable(t *testing.T) {
	if short := pair(t, cubes(t, "DEGRADED"), 1, "tpu-2x4x4"); short != nil {
		t.Error(short)
	}
}

func TestPartition_StateChangesOneNodeAtATime(t *testing.T) {
	tree, broken := cubes(t, "HEALTHY"), cubes(t, "DEGRADED")
	const key = "cloud.google.com/gke-tpu-partition-"
	for _, name := range []string{"a1", "a2"} {
		tree = tree.With(topology.Node{Name: name, Labels: map[string]string{
			key + "4x4x4-id": "a", key + "4x4x4-state": "DEGRADED", key + "2x4x4-id": name,
		}})
	}
	got := pair(t, tree, 2, "tpu-4x4x4")
	want := pair(t, broken, 2, "tpu-4x4x4")
	if got == nil || want == nil || got.String() != want.String() {
		t.Errorf("changed: %v\nbuilt:   %v", got, want)
	}
}

// TestLevel_TPUSlice counts node pools as domains only where a pool is one slice of several hosts.
func TestLevel_TPUSlice(t *testing.T) {
	const pool, shape, count = "cloud.google.com/gke-nodepool", topology.LabelTPUTopology, "cloud.google.com/gke-accelerator-count"
	nodes := []topology.Node{
		{Name: "gpu", Labels: map[string]string{pool: "a100"}},
		{Name: "unsaid", Labels: map[string]string{pool: "v5e-8-unsaid", shape: "2x4"}},
		{Name: "single", Labels: map[string]string{pool: "v5e-8", shape: "2x4", count: "8"}},
	}
	if levels := topology.DetectLevels(nodes); len(levels) > 0 {
		t.Errorf("no pool is a slice of several hosts, and the levels are %v", levels)
	}
	for _, host := range []string{"a", "b"} {
		nodes = append(
			nodes,
			topology.Node{Name: host, Labels: map[string]string{pool: "v5e-16", shape: "4x4", count: "4"}},
		)
	}
	levels := topology.DetectLevels(nodes)
	if len(levels) != 1 || levels[0].Name != "tpu-slice" {
		t.Fatalf("levels %v, want tpu-slice", levels)
	}
	nodes = append(nodes, topology.Node{Name: "c", Labels: map[string]string{pool: "v5e-16-unsaid", shape: "4x4"}})
	want := []string{"", "", "", "v5e-16", "v5e-16", "v5e-16-unsaid"}
	for i, n := range nodes {
		if got := levels[0].Value(n.Labels); got != want[i] {
			t.Errorf("node %s is in domain %q, want %q", n.Name, got, want[i])
		}
	}
	if families := topology.Families(nodes); len(families) != 1 || families[0].Nodes != 3 {
		t.Errorf("families %v, want one with 3 nodes", families)
	}
	if all, err := topology.Configured([]string{pool}); err != nil || all[0].Value(nodes[0].Labels) != "a100" {
		t.Errorf("an administrator who names node pools means all of them: %v, %v", all, err)
	}
}

// TestTPUShape_Units follows Google's tables of shapes: parts of a cube, whole cubes, parts of a pod of two dimensions.
func TestTPUShape_Units(t *testing.T) {
	for text, want := range map[string]string{
		"2x2x1":    "1 cloud.google.com/gke-tpu-partition-2x2x1-id",
		"4x8x4":    "", // extents must not fall
		"16x16":    "",
		"1x2x2":    "",
		"2x2x2":    "1 cloud.google.com/gke-tpu-partition-2x2x2-id",
		"2x2x4":    "1 cloud.google.com/gke-tpu-partition-2x2x4-id",
		"2x4x4":    "1 cloud.google.com/gke-tpu-partition-2x4x4-id",
		"4x4x4":    "1 cloud.google.com/gke-tpu-partition-4x4x4-id",
		"4x4x8":    "2 cloud.google.com/gke-tpu-partition-4x4x4-id",
		"8x16x16":  "32 cloud.google.com/gke-tpu-partition-4x4x4-id",
		"16x16x24": "96 cloud.google.com/gke-tpu-partition-4x4x4-id",
		"4x4x6":    "",
		"2x4x8":    "",
		"4x8":      "1 cloud.google.com/gke-tpu-slice-4x8-id",
		"8x4":      "",
	} {
		shape, err := topology.ParseTPUShape(text)
		if err != nil {
			t.Fatal(err)
		}
		key, count, ok := shape.Units()
		if got := fmt.Sprint(count, " ", key); ok != (want != "") || ok && got != want {
			t.Errorf("%s consists of %s (%v), want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "4", "4x4x4x4", "4xx4", "0x4", "-1x4", "4x4 ", "4096x4096"} {
		if shape, err := topology.ParseTPUShape(text); err == nil {
			t.Errorf("%q is read as %v", text, shape)
		}
	}
}
