package cost

import (
	"slices"
	"strings"
)

// Link is an accelerator's share of the traffic that crosses a boundary.
type Link struct {
	// MBps is the bandwidth of one accelerator's share in one direction, in megabytes (10^6 bytes) per second.
	MBps int64
	// Latency is that of one step of a collective over the boundary, in nanoseconds.
	Latency int64
}

// Network has the links of a kind of fleet, from the inside out.
type Network struct {
	// Name is the value of --network.
	Name string
	// Source states in a line the origin of the figures, and which of them are choices.
	Source string
	// Inside joins the accelerators of a node or, where nodes share NVLink domains, of such a domain.
	Inside Link
	// Leaf joins nodes (or NVLink domains) within one domain of the innermost network level, Spine such domains within
	// one of the next level, Core everything further out.
	Leaf, Spine, Core Link
}

// Latencies of a step. Source: NCCL, src/graph/tuning.cc, table hwLat, protocol Simple: ring over NVLink 3.4 µs, ring
// over the network 14 µs. NCCL does not distinguish tiers of the network, so all of them have the same latency here.
const (
	nvlinkLatency  = 3_400
	networkLatency = 14_000
)

// Bandwidths of one accelerator in one direction, in MB/s.
const (
	// nvlink4 is half of the 900 GB/s that an H100 has in both directions (NVIDIA H100 datasheet; DGX H100 user guide).
	nvlink4 = 450_000
	// nvlink5 is half of the 1.8 TB/s that a Blackwell GPU has in both directions (NVIDIA GB200 NVL72 datasheet).
	// Measured in one domain: 930 GB/s bus bandwidth (kubernetes-sigs/dranet, GB200 runs).
	nvlink5 = 900_000
	// nic400 is a 400 Gb/s port for each GPU (ConnectX-7 in DGX H100 and GB200 SuperPOD; RoCE in Meta's Llama 3
	// clusters).
	nic400 = 50_000
)

// The names of the networks.
const (
	SuperPODH100  = "superpod-h100"
	SuperPODGB200 = "superpod-gb200"
	RoCEH100      = "roce-h100"
	TaperedH100   = "tapered-h100"
)

func nic(mbps int64) Link { return Link{MBps: mbps, Latency: networkLatency} }

// Networks returns all networks, in the order of reports.
func Networks() []Network {
	return []Network{
		{
			Name: SuperPODH100,
			Source: "NVIDIA DGX SuperPOD H100 reference architecture: one 400 Gb/s port per GPU, rail-optimized full fat tree, " +
				"not oversubscribed",
			Inside: Link{nvlink4, nvlinkLatency},
			Leaf:   nic(nic400),
			Spine:  nic(nic400),
			Core:   nic(nic400),
		},
		{
			Name: SuperPODGB200,
			Source: "NVIDIA DGX SuperPOD GB200 reference architecture: NVLink domains of 72 GPUs, one 400 Gb/s port per GPU, full fat " +
				"tree, not oversubscribed",
			Inside: Link{nvlink5, nvlinkLatency},
			Leaf:   nic(nic400),
			Spine:  nic(nic400),
			Core:   nic(nic400),
		},
		{
			Name: RoCEH100,
			Source: "Llama 3 (arXiv:2407.21783, section 3.3.1): 400 Gb/s RoCE per GPU, full bisection in a pod of 3,072 GPUs, 1:7 " +
				"oversubscribed between pods",
			Inside: Link{nvlink4, nvlinkLatency},
			Leaf:   nic(nic400),
			Spine:  nic(nic400),
			Core:   nic(nic400 / 7),
		},
		{
			Name: TaperedH100,
			Source: "a choice, for fleets whose fabric is not described: 400 Gb/s per GPU, 1:2 oversubscribed between leaves, 1:4 " +
				"between pods",
			Inside: Link{nvlink4, nvlinkLatency},
			Leaf:   nic(nic400),
			Spine:  nic(nic400 / 2),
			Core:   nic(nic400 / 4),
		},
	}
}

// NetworkNames lists the networks.
func NetworkNames() []string {
	var names []string
	for _, n := range Networks() {
		names = append(names, n.Name)
	}
	return names
}

// NetworkOf returns the network of a name, false if there is none.
func NetworkOf(name string) (Network, bool) {
	all := Networks()
	at := slices.IndexFunc(all, func(n Network) bool { return n.Name == name })
	if at < 0 {
		return Network{}, false
	}
	return all[at], true
}

// NetworkFor returns the name of a fleet's network if its user names none: for a built-in fleet that of the machines on
// which it is modeled (c1, c2, c3 and fleets derived from them), else SuperPODGB200 where nodes share NVLink domains,
// else TaperedH100.
func NetworkFor(fleet string, shared bool) string {
	stem, _, _ := strings.Cut(fleet, "-")
	stem, _, _ = strings.Cut(stem, "x")
	switch {
	case stem == "c1":
		return SuperPODH100
	case stem == "c2":
		return RoCEH100
	case shared:
		return SuperPODGB200
	}
	return TaperedH100
}
