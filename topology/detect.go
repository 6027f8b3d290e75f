package topology

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// The label families that we know. All of topograph's keys changed with 1.0, and before that most with 0.3.
const (
	familyKubernetes  = "Kubernetes"
	familyAWS         = "AWS"
	familyGoogle      = "Google Cloud"
	familyCoreWeave   = "CoreWeave"
	familyOCI         = "OCI"
	familyNebius      = "Nebius"
	familyCrusoe      = "Crusoe"
	familyAlibaba     = "Alibaba Cloud"
	familyTopograph01 = "topograph 0.1"
	familyTopograph03 = "topograph 0.3"
	familyTopograph1  = "topograph 1"
	familyNVIDIA      = "NVIDIA GPU operator"
	familyLockstep    = "Lockstep"
)

// The weights, in hundredths of an edge between two nodes. A weight is an increment: the further cost of leaving the
// level over leaving the next one further in. The clusters C1 to C5 are those of simulator/inputs/fleet/fleets.
const (
	weightRegion = 10_000 // no job trains in lockstep between regions
	weightZone   = 3_000  // and between zones hardly
	// Between two fabrics there is no RDMA, only the front-end network, and a core is 15:1 oversubscribed (HPN 7.0).
	weightFabric = 1_500
	weightTop    = 200 // C4: 4 instead of 2 beyond layer 1
	// The two switches closest to the node: C1 and C4, 2 and 1.5 and 1. Fleets with oversubscribed pods (C2: 7)
	// configure the weight.
	weightSwitch = 50
	weightRack   = 20  // C2: 1.2 instead of 1; so for a part of a domain whose links stay NVLink or ICI
	weightLink   = 700 // C3: 8 instead of 1 beyond NVLink (930 GB/s against 111); the same is assumed for ICI (C5)
	// The weight of a boundary that a level further in has charged already.
	weightCharged = 1
)

// rung is a level that we know.
type rung struct {
	Level
	family string
	// boundary names the network that the level bounds, if other levels may bound the same: leaving NVLink costs the
	// same, whether one label marks it or three. "" for all other levels.
	boundary string
}

func networkRung(family, name, key string, weight int64) rung {
	return rung{Level: Level{Name: name, Key: key, Weight: weight}, family: family}
}

// coreWeaveRung is a level of CoreWeave's network, which has the same values under two prefixes.
func coreWeaveRung(name, key string, weight int64) rung {
	r := networkRung(familyCoreWeave, name, key, weight)
	_, r.boundary, _ = strings.Cut(key, "/")
	return r
}

func acceleratorRung(family, name, key string, weight int64) rung {
	return rung{Level: Level{Name: name, Key: key, Weight: weight, Accelerator: true}, family: family}
}

// nvlinkRung is an NVLink domain.
func nvlinkRung(family, name, key string) rung {
	r := acceleratorRung(family, name, key, weightLink)
	r.boundary = "NVLink"
	return r
}

// ladder is the canonical order with the given fabric tiers, outermost first, in their place. All network levels
// precede all accelerator levels; in each half a family's levels are in order.
func ladder(tiers []int) []rung {
	rungs := networkRungs()
	for _, tier := range tiers {
		n := strconv.Itoa(tier)
		weight := int64(weightTop)
		if tier < 2 {
			weight = weightSwitch
		}
		rungs = append(rungs, networkRung(familyTopograph1, "tier-"+n, tierPrefix+n, weight))
	}
	return slices.Concat(rungs, acceleratorRungs(), hostRungs())
}

func networkRungs() []rung {
	return []rung{
		networkRung(familyKubernetes, "region", "topology.kubernetes.io/region", weightRegion),
		networkRung(familyKubernetes, "zone", "topology.kubernetes.io/zone", weightZone),
		// How many layers there are depends on the instance type.
		networkRung(familyAWS, "layer-1", "topology.k8s.aws/network-node-layer-1", weightTop),
		networkRung(familyAWS, "layer-2", "topology.k8s.aws/network-node-layer-2", weightSwitch),
		networkRung(familyAWS, "layer-3", "topology.k8s.aws/network-node-layer-3", weightSwitch),
		networkRung(familyAWS, "layer-4", "topology.k8s.aws/network-node-layer-4", weightSwitch),
		networkRung(familyGoogle, "block", keyGoogleBlock, weightTop),
		networkRung(familyGoogle, "subblock", keyGoogleSubblock, weightSwitch),
		coreWeaveRung("ib-fabric", "ib.coreweave.cloud/fabric", weightFabric),
		coreWeaveRung("fabric", "backend.coreweave.cloud/fabric", weightFabric),
		coreWeaveRung("ib-superpod", "ib.coreweave.cloud/superpod", weightSwitch),
		coreWeaveRung("superpod", "backend.coreweave.cloud/superpod", weightSwitch),
		coreWeaveRung("ib-leafgroup", "ib.coreweave.cloud/leafgroup", weightSwitch),
		coreWeaveRung("leafgroup", "backend.coreweave.cloud/leafgroup", weightSwitch),
		// A place in the hall, seen with the number of a row as its value: not unique, so a rung of the network.
		networkRung(familyCoreWeave, "coreweave-rack", "node.coreweave.cloud/rack", weightRack),
		networkRung(familyOCI, "island", "oci.oraclecloud.com/rdma.hpc_island_id", weightTop),
		networkRung(familyOCI, "network-block", "oci.oraclecloud.com/rdma.network_block_id", weightSwitch),
		networkRung(familyOCI, "local-block", "oci.oraclecloud.com/rdma.local_block_id", weightSwitch),
		networkRung(familyOCI, "oci-rack", "oci.oraclecloud.com/host.rack_id", weightRack),
		networkRung(familyNebius, "gpu-cluster", "topology.nebius.com/gpu-cluster-id", weightFabric),
		networkRung(familyNebius, "nebius-tier-2", "topology.nebius.com/tier-2", weightTop),
		networkRung(familyNebius, "nebius-tier-1", "topology.nebius.com/tier-1", weightSwitch),
		networkRung(familyCrusoe, "ib-partition", "crusoe.ai/ib.partition.id", weightFabric),
		networkRung(familyCrusoe, "rail-pod", "crusoe.ai/pod.id", weightSwitch),
		networkRung(familyAlibaba, "hpn-zone", "alibabacloud.com/hpn-zone", weightFabric),
		// 0.1 has datacenter, spine, block; 0.3 to 0.5 have core, spine, leaf; both have accelerator.
		networkRung(familyTopograph01, "datacenter", "network.topology.nvidia.com/datacenter", weightTop),
		networkRung(familyTopograph03, "core", "network.topology.nvidia.com/core", weightTop),
		networkRung(familyTopograph03, "spine", "network.topology.nvidia.com/spine", weightSwitch),
		networkRung(familyTopograph01, "switch-block", "network.topology.nvidia.com/block", weightSwitch),
		networkRung(familyTopograph03, "leaf", "network.topology.nvidia.com/leaf", weightSwitch),
	}
}

func acceleratorRungs() []rung {
	return []rung{
		// The reservation of one UltraServer: the API gives the block's id for UltraServers only.
		nvlinkRung(familyAWS, "capacity-block", "topology.k8s.aws/capacity-block-id"),
		nvlinkRung(familyAWS, "ultraserver", "topology.k8s.aws/ultraserver-id"),
		acceleratorRung(familyLockstep, "torus", LabelTorus, weightLink),
		tpuSliceRung(),
		// TPUs: a cube of 64 chips is joined to others by switched light, its parts are meshes inside it.
		acceleratorRung(familyGoogle, "tpu-4x4x4", "cloud.google.com/gke-tpu-partition-4x4x4-id", weightLink),
		acceleratorRung(familyGoogle, "tpu-2x4x4", "cloud.google.com/gke-tpu-partition-2x4x4-id", weightRack),
		acceleratorRung(familyGoogle, "tpu-2x2x4", "cloud.google.com/gke-tpu-partition-2x2x4-id", weightRack),
		acceleratorRung(familyGoogle, "tpu-2x2x2", "cloud.google.com/gke-tpu-partition-2x2x2-id", weightRack),
		acceleratorRung(familyGoogle, "tpu-2x2x1", "cloud.google.com/gke-tpu-partition-2x2x1-id", weightRack),
		// The parts of a two-dimensional pod of 16x16 chips.
		acceleratorRung(familyGoogle, "tpu-8x16", "cloud.google.com/gke-tpu-slice-8x16-id", weightRack),
		acceleratorRung(familyGoogle, "tpu-8x8", "cloud.google.com/gke-tpu-slice-8x8-id", weightRack),
		acceleratorRung(familyGoogle, "tpu-4x8", "cloud.google.com/gke-tpu-slice-4x8-id", weightRack),
		acceleratorRung(familyGoogle, "tpu-4x4", "cloud.google.com/gke-tpu-slice-4x4-id", weightRack),
		acceleratorRung(familyGoogle, "tpu-2x4", "cloud.google.com/gke-tpu-slice-2x4-id", weightRack),
		nvlinkRung(familyCoreWeave, "nvlink-domain", "ds.coreweave.com/nvlink.domain"),
		nvlinkRung(familyOCI, "memory-fabric", "oci.oraclecloud.com/host.gpu_memory_fabric_id"),
		nvlinkRung(familyNebius, "nebius-tier-0", "topology.nebius.com/tier-0"),
		nvlinkRung(familyNebius, "nvl-group", "topology.nebius.com/nvl-instance-group-id"),
		nvlinkRung(familyTopograph03, "accelerator", "network.topology.nvidia.com/accelerator"),
		nvlinkRung(familyTopograph1, "rack", keyTopographDomain),
		acceleratorRung(familyTopograph1, "sub-domain", keyTopographPart, weightRack),
		nvlinkRung(familyNVIDIA, "clique", LabelClique),
	}
}

// tpuSliceRung is a node pool that is a TPU slice: ICI ends where it ends.
func tpuSliceRung() rung {
	r := acceleratorRung(familyGoogle, "tpu-slice", keyNodePool, weightLink)
	r.TPUSlices = true
	return r
}

// hostRungs are the machines that run nodes: smaller than everything that connects machines, so further in than the
// clique. They are marked as accelerator levels although nothing accelerates, because they share the property of these
// levels: the id of a machine is unique in the fleet and needs no path. As network levels they would precede the
// clique, and since a path is an identity they would cut every clique into single hosts.
func hostRungs() []rung {
	return []rung{
		acceleratorRung(familyGoogle, "host", "cloud.google.com/gce-topology-host", weightRack),
		acceleratorRung(familyOCI, "rdma-host", "oci.oraclecloud.com/rdma.host_id", weightRack),
	}
}

// tierPrefix begins topograph's fabric tiers; a decimal number follows, 0 being the switch closest to the node.
const tierPrefix = "fabric.topograph.run/tier-"

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

// tiersOf returns the fabric tiers among the keys, outermost first.
func tiersOf(keys iter.Seq[string]) []int {
	var tiers []int
	for key := range keys {
		if tier, ok := fabricTier(key); ok {
			tiers = append(tiers, tier)
		}
	}
	slices.SortFunc(tiers, func(a, b int) int { return cmp.Compare(b, a) })
	return tiers
}

// detect returns the rungs whose label at least one node carries.
func detect(nodes []Node) []rung {
	carried := make(map[string]bool)
	slice := tpuSliceRung()
	for _, n := range nodes {
		for key, value := range n.Labels {
			if value != "" && (key != slice.Key || slice.Value(n.Labels) != "") {
				carried[key] = true
			}
		}
	}
	return slices.DeleteFunc(ladder(tiersOf(maps.Keys(carried))), func(r rung) bool { return !carried[r.Key] })
}

// Family is a family of labels that a fleet carries, for display: levels of one source.
type Family struct {
	Name string
	// Levels are those of DetectLevels that are the family's, outermost first.
	Levels []Carried
	// Nodes is the number of nodes that carry any of them.
	Nodes int
}

// Carried is a level and the number of nodes that carry its label.
type Carried struct {
	Level Level
	Nodes int
}

// String describes the family in one line, with the number of nodes for each level that not all of the family's nodes
// carry.
func (f Family) String() string {
	levels := make([]string, len(f.Levels))
	for i, c := range f.Levels {
		levels[i] = fmt.Sprintf("%s (%s)", c.Level.Name, c.Level.Key)
		if c.Nodes != f.Nodes {
			levels[i] = fmt.Sprintf("%s (%s, %d of them)", c.Level.Name, c.Level.Key, c.Nodes)
		}
	}
	nodes := "nodes"
	if f.Nodes == 1 {
		nodes = "node"
	}
	return fmt.Sprintf("%s on %d %s: %s", f.Name, f.Nodes, nodes, strings.Join(levels, ", "))
}

// Families returns the label families that nodes carry, in the order of KnownLevels. The levels of all of them are
// those of DetectLevels; more than one family with network levels describes one network twice, and is for display only.
func Families(nodes []Node) []Family {
	rungs := detect(nodes)
	levels := priced(rungs)
	var families []Family
	for _, name := range familyNames() {
		counts, total := carriers(name, rungs, nodes)
		if total == 0 {
			continue
		}
		f := Family{Name: name, Nodes: total}
		for i, n := range counts {
			if n > 0 {
				f.Levels = append(f.Levels, Carried{levels[i], n})
			}
		}
		families = append(families, f)
	}
	return families
}

// carriers returns the number of nodes that carry each rung as one of the family's, and of those that carry any.
func carriers(family string, rungs []rung, nodes []Node) (counts []int, total int) {
	counts = make([]int, len(rungs))
	for _, n := range nodes {
		carries := 0
		for i, r := range rungs {
			if n.Labels[r.Key] != "" && (!r.TPUSlices || r.Value(n.Labels) != "") && r.familyOn(n) == family {
				counts[i]++
				carries = 1
			}
		}
		total += carries
	}
	return counts, total
}

func familyNames() []string {
	var names []string
	for _, r := range ladder([]int{0}) {
		if !slices.Contains(names, r.family) {
			names = append(names, r.family)
		}
	}
	return names
}

// familyOn is the family of the rung's label on a node. Topograph 0.1 and 0.3 share two labels: they are 0.1's beside
// labels that only 0.1 has.
func (r rung) familyOn(n Node) string {
	if r.family != familyTopograph03 {
		return r.family
	}
	has := func(level string) bool { return n.Labels["network.topology.nvidia.com/"+level] != "" }
	if (has("datacenter") || has("block")) && !has("core") && !has("leaf") {
		return familyTopograph01
	}
	return r.family
}
