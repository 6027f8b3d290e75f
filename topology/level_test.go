package topology_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/topology"
)

func TestDetectLevels(t *testing.T) {
	for name, c := range map[string]struct {
		labels []string // one node each
		want   string
	}{
		"no labels":      {[]string{""}, ""},
		"unknown labels": {[]string{"kubernetes.io/hostname topology.example.com/rack"}, ""},
		"topograph 1.0": {
			[]string{"fabric.topograph.run/tier-0 fabric.topograph.run/tier-1 accelerator.topograph.run/domain nvidia.com/gpu.clique"},
			"tier-1 tier-0 rack clique",
		},
		"tiers of any depth, in order of number": {
			[]string{"fabric.topograph.run/tier-10 fabric.topograph.run/tier-2", "fabric.topograph.run/tier-9"},
			"tier-10 tier-9 tier-2",
		},
		"not tiers": {
			[]string{"fabric.topograph.run/tier-01 fabric.topograph.run/tier- fabric.topograph.run/tier--1 fabric.topograph.run/tier-+1 fabric.topograph.run/tier-x"},
			"",
		},
		"topograph 0.3": {
			[]string{"network.topology.nvidia.com/leaf network.topology.nvidia.com/core network.topology.nvidia.com/accelerator network.topology.nvidia.com/spine"},
			"core spine leaf accelerator",
		},
		"partitioned racks": {
			[]string{"accelerator.topograph.run/sub-domain accelerator.topograph.run/domain nvidia.com/gpu.clique"},
			"rack sub-domain clique",
		},
		"AWS, depth by instance type": {
			[]string{
				"topology.kubernetes.io/zone topology.kubernetes.io/region topology.k8s.aws/network-node-layer-1 topology.k8s.aws/network-node-layer-2",
				"topology.k8s.aws/network-node-layer-1 topology.k8s.aws/network-node-layer-4",
			},
			"region zone layer-1 layer-2 layer-4",
		},
		"GCP, the host further in than the clique": {
			[]string{"cloud.google.com/gce-topology-host cloud.google.com/gce-topology-subblock cloud.google.com/gce-topology-block nvidia.com/gpu.clique"},
			"block subblock clique host",
		},
		"empty values": {[]string{"nvidia.com/gpu.clique= topology.kubernetes.io/zone"}, "zone"},
	} {
		t.Run(name, func(t *testing.T) {
			var nodes []topology.Node
			for _, keys := range c.labels {
				labels := make(map[string]string)
				for key := range strings.FieldsSeq(keys) {
					value := "v"
					if k, ok := strings.CutSuffix(key, "="); ok {
						key, value = k, ""
					}
					labels[key] = value
				}
				nodes = append(nodes, topology.Node{Labels: labels})
			}
			var got []string
			for _, l := range topology.DetectLevels(nodes) {
				got = append(got, l.Name)
			}
			if diff := cmp.Diff(c.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("levels (-want +got):\n%s", diff)
			}
		})
	}
}

// A level is looked up by name or by key, so neither may mean two levels.
func TestKnownLevelsAreDistinct(t *testing.T) {
	seen := make(map[string]bool)
	for _, l := range topology.KnownLevels() {
		if seen[l.Name] || seen[l.Key] {
			t.Errorf("%v is ambiguous", l)
		}
		seen[l.Name], seen[l.Key] = true, true
	}
}
