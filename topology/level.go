package topology

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Level is one rung of the ladder: a short name for people and the node-label key that defines it.
type Level struct{ Name, Key string }

// tierPrefix begins topograph's fabric tiers; a decimal number follows, 0 being the switch closest to the node.
const tierPrefix = "fabric.topograph.run/tier-"

// listedTiers is the number of fabric tiers in KnownLevels: a three-layer fat tree and one above it. DetectLevels has
// no such limit.
const listedTiers = 4

// KnownLevels returns the ladder of every label family we know, outermost first, as one list. Families are alternatives
// of each other (a cloud's layers, topograph's tiers), so a fleet carries only some of these levels; their order
// matters only within a family and between a family and the accelerator domains inside it.
//
// A clique is inside a rack and not the reverse: a rack's NVLink fabric may be partitioned into several cliques.
func KnownLevels() []Level {
	tiers := make([]int, listedTiers)
	for i := range tiers {
		tiers[i] = listedTiers - 1 - i
	}
	return ladder(tiers)
}

// ladder is the canonical order with the given fabric tiers, outermost first, in their place.
func ladder(tiers []int) []Level {
	levels := []Level{
		{"region", "topology.kubernetes.io/region"},
		{"zone", "topology.kubernetes.io/zone"},
		{"layer-1", "topology.k8s.aws/network-node-layer-1"},
		{"layer-2", "topology.k8s.aws/network-node-layer-2"},
		{"layer-3", "topology.k8s.aws/network-node-layer-3"},
		{"layer-4", "topology.k8s.aws/network-node-layer-4"},
		{"block", "cloud.google.com/gce-topology-block"},
		{"subblock", "cloud.google.com/gce-topology-subblock"},
		{"core", "network.topology.nvidia.com/core"},
		{"spine", "network.topology.nvidia.com/spine"},
		{"leaf", "network.topology.nvidia.com/leaf"},
	}
	for _, tier := range tiers {
		n := strconv.Itoa(tier)
		levels = append(levels, Level{"tier-" + n, tierPrefix + n})
	}
	return append(levels,
		Level{"accelerator", "network.topology.nvidia.com/accelerator"},
		Level{"rack", "accelerator.topograph.run/domain"},
		Level{"sub-domain", "accelerator.topograph.run/sub-domain"},
		Level{"clique", LabelClique},
		// A machine that hosts several nodes: further in than everything that connects machines.
		Level{"host", "cloud.google.com/gce-topology-host"},
	)
}

// DetectLevels returns the known levels of which at least one node carries the label, outermost first.
func DetectLevels(nodes []Node) []Level {
	carried := make(map[string]bool)
	var tiers []int
	for _, n := range nodes {
		for key, value := range n.Labels {
			if value == "" || carried[key] {
				continue
			}
			carried[key] = true
			if tier, ok := fabricTier(key); ok {
				tiers = append(tiers, tier)
			}
		}
	}
	slices.SortFunc(tiers, func(a, b int) int { return cmp.Compare(b, a) })
	return slices.DeleteFunc(ladder(tiers), func(l Level) bool { return !carried[l.Key] })
}

// fabricTier reads the number of a fabric tier from its label key. Only the canonical spelling counts, so that no two
// keys are one tier.
func fabricTier(key string) (int, bool) {
	digits, ok := strings.CutPrefix(key, tierPrefix)
	if !ok {
		return 0, false
	}
	tier, err := strconv.Atoi(digits)
	return tier, err == nil && tier >= 0 && strconv.Itoa(tier) == digits
}
