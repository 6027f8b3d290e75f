package topology_test

import (
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

func TestShortfall_OneLine(t *testing.T) {
	clique := topology.Level{Name: "clique", Key: topology.LabelClique}
	rack := topology.Domain{Level: clique, Path: []string{"su-1", "leaf-1", "rack-3"}}
	near := []topology.Near{{Domain: rack, Holds: 14}}
	for want, short := range map[string]topology.Shortfall{
		"needs 16 members in one clique (nvidia.com/gpu.clique); nearest su-1/leaf-1/rack-3: 14 of 16; " +
			"4 nodes barred by node selector, 2 nodes outside every clique (no label)": {
			Members: 16, Level: clique, Nearest: near, Barred: []topology.Rule{{Rule: "node selector", Nodes: 4}}, Outside: 2,
		},
		"needs 16 members in one clique (nvidia.com/gpu.clique); nearest su-1/leaf-1/rack-3: 14 of 16, without launcher-0; " +
			"1 node without room": {
			Members: 16, Level: clique, Nearest: near, Lacking: "launcher-0", Full: 1,
		},
		"needs 1 member; the cluster holds 0 of 1; 1 node barred by a rule": {
			Members: 1, Nearest: []topology.Near{{}}, Barred: []topology.Rule{{Rule: "a\nrule", Nodes: 1}},
		},
		"needs 2 members in one clique (nvidia.com/gpu.clique); no node is in a clique; 7 nodes outside every clique (no label)": {
			Members: 2, Level: clique, Outside: 7,
		},
		"needs 2 members; no node offers example.com/gpu, example.com/nic; the cluster holds 0 of 2; 4 nodes without room": {
			Members: 2, Nearest: []topology.Near{{}}, Full: 4, Never: true, Unoffered: []string{"example.com/gpu", "example.com/nic"},
		},
	} {
		if got := short.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// A resource that no node has is named, and one that is only used up is not.
func TestShortfall_NamesWhatNoNodeOffers(t *testing.T) {
	tree, err := topology.NewTree(nil, []topology.Node{{Name: "a"}, {Name: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	gang := topology.Gang{
		Name:      "g",
		Members:   make([]topology.Member, 1),
		Resources: []string{"cpu", "example.com/gpu", "example.com/nic", "example.com/tpu"},
		Shapes:    []topology.Shape{{Demand: topology.Capacity{1, 1, 1}}},
	}
	used := topology.Ledger{
		Tree: tree, Free: []topology.Capacity{{8, 0}, {8, 0}}, Total: []topology.Capacity{{8, 4}, {8}},
	}
	unknown := used
	unknown.Total = nil
	nameless := gang
	nameless.Resources = nil
	for name, c := range map[string]struct {
		ledger topology.Ledger
		gang   topology.Gang
		want   []string
	}{
		"none has it, even empty": {used, gang, []string{"example.com/nic"}},
		"nobody knows":            {unknown, gang, nil},
		"it has no name":          {used, nameless, nil},
	} {
		_, short, err := topology.Place(c.ledger, c.gang)
		if err != nil || short == nil {
			t.Fatalf("%s: %v, %v", name, short, err)
		}
		if !slices.Equal(short.Unoffered, c.want) {
			t.Errorf("%s: %v, want %v", name, short.Unoffered, c.want)
		}
	}
}
