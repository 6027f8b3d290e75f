package topology_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/topology"
)

// carrying makes a node per line of label keys. A key may have a value: "key=value", "key=" for an empty one.
func carrying(lines ...string) []topology.Node {
	var nodes []topology.Node
	for i, keys := range lines {
		labels := make(map[string]string)
		for field := range strings.FieldsSeq(keys) {
			key, value, ok := strings.Cut(field, "=")
			if !ok {
				value = "v"
			}
			labels[key] = value
		}
		nodes = append(nodes, topology.Node{Name: fmt.Sprint("n", i), Labels: labels})
	}
	return nodes
}

// ladder writes levels as "name:weight", accelerator levels in brackets.
func ladder(levels []topology.Level) string {
	var names []string
	for _, l := range levels {
		name := fmt.Sprint(l.Name, ":", l.Weight)
		if l.Accelerator {
			name = "[" + name + "]"
		}
		names = append(names, name)
	}
	return strings.Join(names, " ")
}

// One realistic node per dialect.
func TestDialects(t *testing.T) {
	for name, c := range map[string]struct{ node, levels, families string }{
		"topograph 1, NVL72 with the GPU operator": {
			`fabric.topograph.run/tier-0=leaf-3 fabric.topograph.run/tier-1=spine-1 fabric.topograph.run/tier-2=core-1
			accelerator.topograph.run/domain=nvl-7 nvidia.com/gpu.clique=1f2e.32766`,
			"tier-2:200 tier-1:50 tier-0:50 [rack:1] [clique:700]",
			"topograph 1: tier-2 tier-1 tier-0 rack; NVIDIA GPU operator: clique",
		},
		"topograph 1, domain and sub-domain": {
			"accelerator.topograph.run/sub-domain=s1 accelerator.topograph.run/domain=d1",
			"[rack:700] [sub-domain:20]",
			"topograph 1: rack sub-domain",
		},
		"topograph 0.3": {
			`network.topology.nvidia.com/leaf=s1 network.topology.nvidia.com/core=s3
			network.topology.nvidia.com/accelerator=nvl1 network.topology.nvidia.com/spine=s2`,
			"core:200 spine:50 leaf:50 [accelerator:700]",
			"topograph 0.3: core spine leaf accelerator",
		},
		"topograph 0.1": {
			`network.topology.nvidia.com/accelerator=nvl1 network.topology.nvidia.com/block=s1
			network.topology.nvidia.com/spine=s2 network.topology.nvidia.com/datacenter=s3`,
			"datacenter:200 spine:50 switch-block:50 [accelerator:700]",
			"topograph 0.1: datacenter spine switch-block accelerator",
		},
		"AWS p5": {
			`topology.kubernetes.io/region=us-east-2 topology.kubernetes.io/zone=us-east-2a
			topology.k8s.aws/zone-id=use2-az1 topology.k8s.aws/network-node-layer-1=nn-1
			topology.k8s.aws/network-node-layer-2=nn-2 topology.k8s.aws/network-node-layer-3=nn-3`,
			"region:10000 zone:3000 layer-1:200 layer-2:50 layer-3:50",
			"Kubernetes: region zone; AWS: layer-1 layer-2 layer-3",
		},
		"AWS p6-b200, a layer more": {
			"topology.k8s.aws/network-node-layer-3=nn-3 topology.k8s.aws/network-node-layer-4=nn-4",
			"layer-3:50 layer-4:50",
			"AWS: layer-3 layer-4",
		},
		"AWS UltraServer": {
			`topology.k8s.aws/ultraserver-id=us-1 topology.k8s.aws/capacity-block-id=cr-1
			topology.k8s.aws/network-node-layer-3=nn-3 nvidia.com/gpu.clique=1f2e.1`,
			"layer-3:50 [capacity-block:1] [ultraserver:1] [clique:700]",
			"AWS: layer-3 capacity-block ultraserver; NVIDIA GPU operator: clique",
		},
		"GCP A4X, the host further in than the clique": {
			`cloud.google.com/gce-topology-host=h1 cloud.google.com/gce-topology-subblock=s1
			cloud.google.com/gce-topology-block=b1 nvidia.com/gpu.clique=1f2e.1`,
			"block:200 subblock:50 [clique:700] [host:20]",
			"Google Cloud: block subblock host; NVIDIA GPU operator: clique",
		},
		"GKE TPU7x": {
			`cloud.google.com/gke-tpu-topology=4x4x4 cloud.google.com/gke-nodepool=p1
			cloud.google.com/gke-tpu-partition-2x2x1-id=a cloud.google.com/gke-tpu-partition-2x2x2-id=b
			cloud.google.com/gke-tpu-partition-2x2x4-id=c cloud.google.com/gke-tpu-partition-2x4x4-id=d
			cloud.google.com/gke-tpu-partition-4x4x4-id=e cloud.google.com/gke-tpu-partition-4x4x4-state=HEALTHY
			cloud.google.com/gce-topology-block=b1`,
			"block:200 [tpu-4x4x4:700] [tpu-2x4x4:20] [tpu-2x2x4:20] [tpu-2x2x2:20] [tpu-2x2x1:20]",
			"Google Cloud: block tpu-4x4x4 tpu-2x4x4 tpu-2x2x4 tpu-2x2x2 tpu-2x2x1",
		},
		"CoreWeave GB200, both prefixes": {
			`ib.coreweave.cloud/fabric=f1 ib.coreweave.cloud/superpod=1 ib.coreweave.cloud/leafgroup=3
			backend.coreweave.cloud/fabric=f1 backend.coreweave.cloud/superpod=1 backend.coreweave.cloud/leafgroup=3
			backend.coreweave.cloud/leafgroup-name=three node.coreweave.cloud/rack=116
			ds.coreweave.com/nvlink.domain=DH4-016`,
			"ib-fabric:1 fabric:1500 ib-superpod:1 superpod:50 ib-leafgroup:1 leafgroup:50 coreweave-rack:20 " +
				"[nvlink-domain:700]",
			"CoreWeave: ib-fabric fabric ib-superpod superpod ib-leafgroup leafgroup coreweave-rack nvlink-domain",
		},
		"CoreWeave H100": {
			"ib.coreweave.cloud/leafgroup=3 ib.coreweave.cloud/superpod=1 ib.coreweave.cloud/fabric=f1",
			"ib-fabric:1500 ib-superpod:50 ib-leafgroup:50",
			"CoreWeave: ib-fabric ib-superpod ib-leafgroup",
		},
		"OCI GB200": {
			`oci.oraclecloud.com/rdma.host_id=clnbliq oci.oraclecloud.com/rdma.local_block_id=xvl2gga
			oci.oraclecloud.com/rdma.network_block_id=sn4ibrza oci.oraclecloud.com/rdma.hpc_island_id=md2gqsaja
			oci.oraclecloud.com/host.rack_id=r1 oci.oraclecloud.com/host.gpu_memory_fabric_id=tkj3zctga`,
			"island:200 network-block:50 local-block:50 oci-rack:20 [memory-fabric:700] [rdma-host:20]",
			"OCI: island network-block local-block oci-rack memory-fabric rdma-host",
		},
		"Nebius GB300": {
			`topology.nebius.com/tier-0=t0 topology.nebius.com/tier-1=t1 topology.nebius.com/tier-2=t2
			topology.nebius.com/gpu-cluster-id=c1`,
			"gpu-cluster:1500 nebius-tier-2:200 nebius-tier-1:50 [nebius-tier-0:700]",
			"Nebius: gpu-cluster nebius-tier-2 nebius-tier-1 nebius-tier-0",
		},
		"Crusoe GB200": {
			"crusoe.ai/pod.id=p1 crusoe.ai/ib.partition.id=i1 crusoe.ai/ib.partition.name=one nvidia.com/gpu.clique=1f2e.1",
			"ib-partition:1500 rail-pod:50 [clique:700]",
			"Crusoe: ib-partition rail-pod; NVIDIA GPU operator: clique",
		},
		"Alibaba": {
			"topology.kubernetes.io/region=cn-beijing alibabacloud.com/hpn-zone=A1",
			"region:10000 hpn-zone:1500",
			"Kubernetes: region; Alibaba Cloud: hpn-zone",
		},
		"nothing that we know": {"kubernetes.io/hostname=n1 topology.example.com/rack=r1", "", ""},
		"empty values":         {"nvidia.com/gpu.clique= topology.kubernetes.io/zone=a", "zone:3000", "Kubernetes: zone"},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := carrying(c.node)
			if diff := cmp.Diff(c.levels, ladder(topology.DetectLevels(nodes))); diff != "" {
				t.Errorf("levels (-want +got):\n%s", diff)
			}
			var families []string
			for _, f := range topology.Families(nodes) {
				var names []string
				for _, l := range f.Levels {
					names = append(names, l.Level.Name)
				}
				families = append(families, f.Name+": "+strings.Join(names, " "))
			}
			if diff := cmp.Diff(c.families, strings.Join(families, "; ")); diff != "" {
				t.Errorf("families (-want +got):\n%s", diff)
			}
		})
	}
}

func TestDetectLevels_OfAFleet(t *testing.T) {
	for name, c := range map[string]struct {
		nodes []topology.Node
		want  string
	}{
		"no nodes": {nil, ""},
		"tiers of any depth, in order of number": {
			carrying("fabric.topograph.run/tier-10 fabric.topograph.run/tier-2", "fabric.topograph.run/tier-9"),
			"tier-10:200 tier-9:200 tier-2:200",
		},
		"not tiers": {
			carrying(`fabric.topograph.run/tier-01 fabric.topograph.run/tier- fabric.topograph.run/tier--1
				fabric.topograph.run/tier-+1 fabric.topograph.run/tier-x`),
			"",
		},
		"what any node carries": {
			carrying("topology.k8s.aws/network-node-layer-1 topology.k8s.aws/network-node-layer-2",
				"topology.k8s.aws/network-node-layer-1 topology.k8s.aws/network-node-layer-4"),
			"layer-1:200 layer-2:50 layer-4:50",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, ladder(topology.DetectLevels(c.nodes))); diff != "" {
				t.Errorf("levels (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFamilies(t *testing.T) {
	nodes := carrying(
		"fabric.topograph.run/tier-1 fabric.topograph.run/tier-0 nvidia.com/gpu.clique accelerator.topograph.run/domain",
		"fabric.topograph.run/tier-1 nvidia.com/gpu.clique",
		"network.topology.nvidia.com/spine network.topology.nvidia.com/block network.topology.nvidia.com/accelerator",
		"network.topology.nvidia.com/spine network.topology.nvidia.com/leaf network.topology.nvidia.com/accelerator",
		"network.topology.nvidia.com/spine network.topology.nvidia.com/leaf",
		"example.com/rack",
	)
	want := []string{
		"topograph 0.1 on 1 node: spine (network.topology.nvidia.com/spine), " +
			"switch-block (network.topology.nvidia.com/block), accelerator (network.topology.nvidia.com/accelerator)",
		"topograph 0.3 on 2 nodes: spine (network.topology.nvidia.com/spine), " +
			"leaf (network.topology.nvidia.com/leaf), accelerator (network.topology.nvidia.com/accelerator, 1 of them)",
		"topograph 1 on 2 nodes: tier-1 (fabric.topograph.run/tier-1), tier-0 (fabric.topograph.run/tier-0, 1 of them), " +
			"rack (accelerator.topograph.run/domain, 1 of them)",
		"NVIDIA GPU operator on 2 nodes: clique (nvidia.com/gpu.clique)",
	}
	for range 2 {
		var got []string
		for _, f := range topology.Families(nodes) {
			got = append(got, f.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("families (-want +got):\n%s", diff)
		}
		slices.Reverse(nodes)
	}
}

// A level is looked up by name or by key, so neither may mean two levels. Every level has a weight, and the
// accelerators' hierarchy begins where the network's ends.
func TestKnownLevels_AreUnambiguous(t *testing.T) {
	seen := map[string]bool{topology.LevelNode: true, "kubernetes.io/hostname": true}
	accelerators := false
	for _, l := range topology.KnownLevels() {
		if seen[l.Name] || seen[l.Key] {
			t.Errorf("%v is ambiguous", l)
		}
		seen[l.Name], seen[l.Key] = true, true
		if l.Weight <= 0 {
			t.Errorf("%v has no weight", l)
		}
		if accelerators && !l.Accelerator {
			t.Errorf("%v is a network level after an accelerator level", l)
		}
		accelerators = l.Accelerator
	}
}

// The ladders of the families, from their sources.
func TestKnownLevels_AreInOrder(t *testing.T) {
	var names []string
	for _, l := range topology.KnownLevels() {
		names = append(names, l.Name)
	}
	for _, family := range []string{
		"region zone layer-1 layer-2 layer-3 layer-4 capacity-block ultraserver clique",
		"region zone block subblock clique host",
		"block subblock tpu-4x4x4 tpu-2x4x4 tpu-2x2x4 tpu-2x2x2 tpu-2x2x1",
		"zone ib-fabric ib-superpod ib-leafgroup coreweave-rack nvlink-domain clique",
		"zone fabric superpod leafgroup coreweave-rack nvlink-domain clique",
		"zone island network-block local-block oci-rack memory-fabric clique rdma-host",
		"zone gpu-cluster nebius-tier-2 nebius-tier-1 nebius-tier-0 nvl-group clique",
		"zone ib-partition rail-pod clique",
		"region zone hpn-zone",
		"zone datacenter spine switch-block accelerator clique",
		"zone core spine leaf accelerator clique",
		"zone tier-3 tier-2 tier-1 tier-0 rack sub-domain clique",
	} {
		last := -1
		for name := range strings.FieldsSeq(family) {
			at := slices.Index(names, name)
			if at <= last {
				t.Errorf("%s is at %d in the list, and in %q after %d", name, at, family, last)
			}
			last = at
		}
	}
}

func TestConfigured(t *testing.T) {
	for name, c := range map[string]struct{ keys, want string }{
		"nothing": {"", ""},
		"known":   {"topology.kubernetes.io/zone nvidia.com/gpu.clique kubernetes.io/hostname", "zone:3000 [clique:700]"},
		"tiers of any depth": {
			"fabric.topograph.run/tier-12 fabric.topograph.run/tier-01 fabric.topograph.run/tier-0",
			"tier-12:200 tier-01:0 tier-0:50",
		},
		"unknown": {"example.com/hall example.com/row rack", "hall:0 row:0 rack:0"},
		"names that are taken": {
			"a.com/rack b.com/rack accelerator.topograph.run/domain c.com/node rack-3 d.com/rack",
			"rack-2:0 rack-4:0 rack:700 node-2:0 rack-3:0 rack-5:0",
		},
		"names without a part after the slash": {"example.com/ hall", "example.com/:0 hall:0"},
		"one boundary is paid for once": {
			"ds.coreweave.com/nvlink.domain accelerator.topograph.run/domain nvidia.com/gpu.clique",
			"[nvlink-domain:1] [rack:1] [clique:700]",
		},
		"a clique around a network level is a rung like any other": {
			"accelerator.topograph.run/domain nvidia.com/gpu.clique example.com/chassis cloud.google.com/gce-topology-host",
			"rack:1 clique:700 chassis:0 [host:20]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			keys := strings.Fields(c.keys)
			got, err := topology.Configured(keys)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, ladder(got)); diff != "" {
				t.Errorf("levels (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(strings.Fields(c.keys), keys); diff != "" {
				t.Errorf("the caller's keys changed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConfigured_Faults(t *testing.T) {
	for name, c := range map[string]struct {
		keys  []string
		cause error
		want  string
	}{
		"empty": {
			[]string{"a", ""},
			topology.ErrNoLevel,
			"levels: label key number 2 is empty: it needs a level",
		},
		"twice": {
			[]string{"a", "b", "a"},
			topology.ErrDuplicate,
			`levels: label key "a": it is there twice`,
		},
		"something inside a node": {
			[]string{"kubernetes.io/hostname", "a"},
			topology.ErrOrder,
			`levels: label key "kubernetes.io/hostname": it is not further out than what is inside it; ` +
				"it is the level of single nodes: put it last or leave it out",
		},
		"nodes twice": {
			[]string{"kubernetes.io/hostname", "kubernetes.io/hostname"},
			topology.ErrOrder,
			`levels: label key "kubernetes.io/hostname": it is not further out than what is inside it; ` +
				"it is the level of single nodes: put it last or leave it out",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := topology.Configured(c.keys)
			if !errors.Is(err, c.cause) {
				t.Errorf("%v is not caused by %v", err, c.cause)
			}
			if fault := new(topology.InputError); !errors.As(err, &fault) {
				t.Fatalf("%v is not an InputError", err)
			}
			if diff := cmp.Diff(c.want, err.Error()); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}
