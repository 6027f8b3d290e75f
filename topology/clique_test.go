package topology_test

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

// labelsOf reads labels as key=value, separated by spaces.
func labelsOf(text string) map[string]string {
	labels := map[string]string{}
	for field := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(field, "=")
		labels[key] = value
	}
	return labels
}

func TestCliqueOf(t *testing.T) {
	const subblock = "cloud.google.com/gce-topology-block=b7 cloud.google.com/gce-topology-subblock=s1"
	for name, test := range map[string]struct{ labels, want string }{
		"NVIDIA":                    {"nvidia.com/gpu.clique=1f2e-77.3", "1f2e-77 part 3 by nvidia.com/gpu.clique"},
		"dots in the domain":        {"nvidia.com/gpu.clique=a.b.1", "a.b part 1 by nvidia.com/gpu.clique"},
		"NVIDIA before all others":  {"nvidia.com/gpu.clique=u.1 topology.nebius.com/tier-0=n", "u part 1 by nvidia.com/gpu.clique"},
		"without a partition":       {"nvidia.com/gpu.clique=rack-7", "clique label without partition"},
		"with an empty partition":   {"nvidia.com/gpu.clique=rack-7.", "clique label without partition"},
		"with an empty domain":      {"nvidia.com/gpu.clique=.7", "clique label without partition"},
		"what cannot be read stays": {"nvidia.com/gpu.clique=x topology.nebius.com/tier-0=n", "clique label without partition"},
		"an empty label":            {"nvidia.com/gpu.clique=", "none"},
		"topograph":                 {"accelerator.topograph.run/domain=rack-1", "rack-1 part  by accelerator.topograph.run/domain"},
		"topograph with parts": {
			"accelerator.topograph.run/domain=rack-1 accelerator.topograph.run/sub-domain=2",
			"rack-1 part 2 by accelerator.topograph.run/domain",
		},
		"a part without a domain": {"accelerator.topograph.run/sub-domain=2", "none"},
		"topograph 0.3": {
			"network.topology.nvidia.com/accelerator=nvl-7", "nvl-7 part  by network.topology.nvidia.com/accelerator",
		},
		"CoreWeave": {"ds.coreweave.com/nvlink.domain=d1", "d1 part  by ds.coreweave.com/nvlink.domain"},
		"Nebius": {
			"topology.nebius.com/tier-2=c topology.nebius.com/tier-0=n1", "n1 part  by topology.nebius.com/tier-0",
		},
		"OCI": {
			"oci.oraclecloud.com/host.gpu_memory_fabric_id=f1 oci.oraclecloud.com/host.rack_id=r",
			"f1 part  by oci.oraclecloud.com/host.gpu_memory_fabric_id",
		},
		"AWS": {
			"topology.k8s.aws/capacity-block-id=cb topology.k8s.aws/ultraserver-id=us",
			"us part  by topology.k8s.aws/ultraserver-id",
		},
		"AWS, the block alone": {"topology.k8s.aws/capacity-block-id=cb", "cb part  by topology.k8s.aws/capacity-block-id"},
		"Google, H100":         {subblock + " nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3", "none"},
		"Google, unknown":      {subblock, "none"},
		"Google, GB200": {
			subblock + " nvidia.com/gpu.product=NVIDIA-GB200", "b7/s1 part  by cloud.google.com/gce-topology-subblock",
		},
		"Google, A4X Max": {
			subblock + " node.kubernetes.io/instance-type=a4x-maxgpu-4g-metal",
			"b7/s1 part  by cloud.google.com/gce-topology-subblock",
		},
		"GKE, GB300": {
			subblock + " cloud.google.com/gke-accelerator=nvidia-gb300",
			"b7/s1 part  by cloud.google.com/gce-topology-subblock",
		},
		"no NVLink": {"topology.kubernetes.io/zone=z fabric.topograph.run/tier-0=l", "none"},
	} {
		t.Run(name, func(t *testing.T) {
			clique, by, err := topology.CliqueOf(labelsOf(test.labels))
			got := fmt.Sprintf("%s part %s by %s", clique.Domain, clique.Partition, by)
			switch {
			case err != nil:
				got = err.Error()
			case by == "":
				got = "none"
			}
			if got != test.want || (err != nil) != errors.Is(err, topology.ErrPartition) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// Two partitions of a rack are two cliques, as are equal partitions of two racks.
func TestCliqueOf_TellsCliquesApart(t *testing.T) {
	seen := map[topology.Clique]bool{}
	for _, value := range []string{"a.1", "a.2", "b.1", "a.b.1"} {
		clique, _, err := topology.CliqueOf(map[string]string{topology.LabelClique: value})
		if err != nil || clique.String() != value {
			t.Errorf("%s is read as %s: %v", value, clique, err)
		}
		seen[clique] = true
	}
	if len(seen) != 4 {
		t.Errorf("there are %d cliques: %v", len(seen), seen)
	}
}

// Every level that is a boundary of NVLink names a clique, or it would be forgotten when a dialect is added.
func TestCliqueOf_EveryNVLinkLevelByItself(t *testing.T) {
	for _, level := range topology.KnownLevels() {
		_, by, err := topology.CliqueOf(map[string]string{level.Key: "x.1"})
		torus := strings.Contains(level.Key, "gke-tpu") || level.TPUSlices || level.Key == topology.LabelTorus
		isNVLink := level.Accelerator && level.Weight == 700 && !torus
		if (by == level.Key) != isNVLink || err != nil {
			t.Errorf("%s: it is a boundary of NVLink: %v, it names a clique by %q: %v", level.Key, isNVLink, by, err)
		}
	}
}

// Where NVIDIA's discovery is at work a node without its label is in no clique; elsewhere others are believed.
func TestCliqueOf_MixedFleet(t *testing.T) {
	nodes := []topology.Node{
		{"a1", labelsOf("nvidia.com/gpu.clique=u.1 accelerator.topograph.run/domain=rack-1")},
		{"a2", labelsOf("accelerator.topograph.run/domain=rack-1")}, // it lost its label
		{"b1", labelsOf("topology.nebius.com/tier-0=n1")},           // here is no discovery
		{"c1", labelsOf("nvidia.com/gpu.clique=odd topology.nebius.com/nvl-instance-group-id=g")},
		{"d1", labelsOf("topology.kubernetes.io/zone=z")},
	}
	discovered := topology.Discovered(nodes)
	want := []string{"u.1", "", "n1", "odd", ""}
	for i, n := range nodes {
		before := maps.Clone(n.Labels)
		if got := topology.WithClique(n, discovered).Labels[topology.LabelClique]; got != want[i] {
			t.Errorf("%s is in clique %q, want %q", n.Name, got, want[i])
		}
		if !maps.Equal(before, n.Labels) {
			t.Errorf("the labels of %s were changed to %v", n.Name, n.Labels)
		}
	}
}
