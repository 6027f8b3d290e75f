package topology_test

import (
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

// pair asks for hosts in one domain of a level, of which cube b is taken.
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
