package topology_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

func TestShortfallSaysItInOneLine(t *testing.T) {
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
	} {
		if got := short.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
