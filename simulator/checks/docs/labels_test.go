package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

// labels lists the node labels that are levels of their own accord: a table for each family, which is one source of
// labels.
func labels(t *testing.T) string {
	t.Helper()
	var out strings.Builder
	out.WriteString(
		generated(
			"Labels of levels",
			"topology.KnownLevels",
			"The node labels that Lockstep reads as levels of the network without being told, outermost first. A fleet has those that at least one node carries; "+
				"`lockstep doctor` names them. *Weight* is the further cost of traffic that leaves a domain of the level, in hundredths of what it costs between two nodes. "+
				"Where several labels mark the boundary of one network (NVLink, a fabric of CoreWeave's), it is paid once. "+
				"Other labels are named in [the profile](../placement.md#levels).",
		),
	)
	weights := make(map[string]int64)
	for _, level := range topology.KnownLevels() {
		weights[level.Key] = level.Weight
	}
	for _, family := range topology.Families(oneNodeForEachLevel()) {
		_, _ = fmt.Fprintf(&out, "## %s\n\n| level | label | weight |\n|---|---|---|\n", family.Name)
		for _, carried := range family.Levels {
			key := carried.Level.Key
			_, _ = fmt.Fprintf(&out, "| %s | `%s` | %d |\n", carried.Level.Name, key, weights[key])
		}
		out.WriteString("\n")
	}
	return out.String()
}

// oneNodeForEachLevel returns nodes that together carry all known labels. A pool's label counts on slices of TPUs only,
// and the labels that two releases of topograph share are the older one's beside one that only it has.
func oneNodeForEachLevel() []topology.Node {
	var nodes []topology.Node
	for _, level := range topology.KnownLevels() {
		nodes = append(nodes, topology.Node{
			Name:   level.Name,
			Labels: map[string]string{level.Key: "1", topology.LabelTPUTopology: "16x16"},
		})
	}
	older := map[string]string{}
	for _, name := range []string{"datacenter", "spine", "block", "accelerator"} {
		older["network.topology.nvidia.com/"+name] = "1"
	}
	return append(nodes, topology.Node{Name: "topograph-0.1", Labels: older})
}
