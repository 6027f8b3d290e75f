package fleet_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
)

// The reference clusters have the shapes that they are known by: nodes, accelerators, and the domains of each level.
func TestBuiltInFleets_HaveTheirShapes(t *testing.T) {
	names := []string{}
	for _, test := range []struct {
		name         string
		nodes        int
		accelerators int64
		cordoned     int
		slices       int
		levels       string
	}{
		{"c1", 512, 4096, 0, 2 * 512, "tier-1:4x128 tier-0:16x32"},
		{"c1-coreweave", 512, 4096, 0, 2 * 512, "fabric:1x512 superpod:4x128 leafgroup:16x32"},
		{"c1x4", 2048, 16384, 0, 2 * 2048, "tier-1:16x128 tier-0:64x32"},
		{"c2", 3072, 24576, 0, 0, "spine:8x384 leaf:1536x2"},
		{"c2x4", 12288, 98304, 0, 0, "core:4x3072 spine:192x64 leaf:1536x8"},
		{"c3", 576, 2304, 0, 3 * 576, "tier-1:4x144 tier-0:8x72 rack:32x18 clique:32x18"},
		{"c3-worn", 576, 2304, 67, 3 * 576, "tier-1:4x144 tier-0:8x72 rack:32x18 clique:34x9-18"},
		{"c3x4", 2304, 9216, 0, 3 * 2304, "tier-1:16x144 tier-0:32x72 rack:128x18 clique:128x18"},
		{
			"c4", 512 + 144 + 32, 512*8 + 144*4 + 32*8, 0, 2 * 512,
			"layer-1:4x32-256 layer-2:11x32-72 layer-3:74x8-18 layer-4:4x8-656 capacity-block:8x18-544 clique:8x18-544",
		},
		{
			"c5", 576, 2304, 0, 0,
			"block:2x288 tpu-4x4x4:34x16-32 tpu-2x4x4:72x8 tpu-2x2x4:144x4 tpu-2x2x2:288x2 tpu-2x2x1:576x1",
		},
		{
			"c6", 128 + 72 + 32 + 64, 128*8 + 72*4 + 32*8, 15, 2*128 + 3*72 + 4*32,
			"tier-1:3x63-155-9 tier-0:8x31-69-9 rack:4x17-18-227 clique:4x17-18-227",
		},
		{"gb200-72", 74, 290, 0, 0, "tier-1:2x2-72 tier-0:2x2-72 rack:4x18-2 clique:4x18-2"},
		{"h100-128", 128, 1024, 0, 0, "tier-1:4x32 tier-0:16x8"},
		{"h100-64", 64, 512, 0, 0, "tier-1:2x32 tier-0:8x8"},
		{"k8s-5000", 5000, 200_000, 0, 0, "tier-0:50x100"},
		{"knavigator-32", 32, 256, 0, 0, "tier-1:1x32 tier-0:4x8"},
	} {
		names = append(names, test.name)
		opened, err := fleet.Open(test.name)
		if err != nil || opened.Name != test.name {
			t.Fatalf("fleet %s opens as %q, %v", test.name, opened.Name, err)
		}
		survey, err := opened.Survey()
		if err != nil {
			t.Fatal(err)
		}
		var levels []string
		for _, level := range survey.Levels {
			text := fmt.Sprintf("%s:%dx%d", level.Name, level.Domains, level.Smallest)
			if level.Largest != level.Smallest {
				text += fmt.Sprintf("-%d", level.Largest)
			}
			if level.Unlabeled > 0 {
				text += fmt.Sprintf("-%d", level.Unlabeled)
			}
			levels = append(levels, text)
		}
		if survey.Nodes != test.nodes || survey.Accelerators != test.accelerators || survey.Cordoned != test.cordoned ||
			len(opened.Slices) != test.slices || strings.Join(levels, " ") != test.levels {
			t.Errorf("%s: %d nodes (%d cordoned), %d accelerators, %d slices, %s\nwant %+v", test.name, survey.Nodes,
				survey.Cordoned, survey.Accelerators, len(opened.Slices), strings.Join(levels, " "), test)
		}
		if survey.About == "" {
			t.Errorf("%s does not say what it is", test.name)
		}
	}
	if !slices.Equal(names, fleet.Names()) {
		t.Errorf("the fleets are %v", fleet.Names())
	}
}

// The ways in which C6 and the worn C3 are worn, counted.
func TestBuiltInFleets_WornOnesAreCounted(t *testing.T) {
	lived, err := fleet.Open("c6")
	if err != nil {
		t.Fatal(err)
	}
	occupied, failed := 0, 0
	for _, slice := range lived.Slices {
		tainted := false
		for _, device := range slice.Spec.Devices {
			tainted = tainted || len(device.Taints) > 0
		}
		if tainted {
			occupied++
		}
		if slice.Spec.Driver == "dra.net" && len(slice.Spec.Devices) == 6 {
			failed++
		}
	}
	if occupied != 39 || failed != 32 {
		t.Errorf(
			"%d machines are occupied and %d have lost NICs, want three in ten of 128, and a leaf of 32",
			occupied,
			failed,
		)
	}
	worn, err := fleet.Open("c3-worn")
	if err != nil {
		t.Fatal(err)
	}
	stale := 0
	for _, node := range worn.Nodes {
		if node.Labels["resource.nvidia.com/computeDomain"] != "" {
			stale++
		}
	}
	if stale != 29 {
		t.Errorf("%d trays have a stale label, want one in twenty of 576", stale)
	}
	cubes, err := fleet.Open("c5")
	if err != nil {
		t.Fatal(err)
	}
	degraded := map[string]int{}
	for _, node := range cubes.Nodes {
		if node.Labels["cloud.google.com/gke-tpu-partition-4x4x4-state"] == "DEGRADED" {
			degraded[node.Labels["cloud.google.com/gke-tpu-partition-4x4x4-id"]]++
		}
	}
	if len(degraded) != 2 || degraded["block-1-cube-07"] != 16 || degraded["block-2-cube-13"] != 16 {
		t.Errorf("degraded hosts by cube: %v", degraded)
	}
}

// everyModel is a fleet with machines of all models, and some that are not as they should be.
const everyModel = `apiVersion: simulator.lockstep.dev/v1alpha1
kind: Fleet
metadata: {name: every-model}
spec:
  groups:
  - name: h100-{node}
    counters: [{name: node, count: 2}]
    labels: {fabric.topograph.run/tier-0: leaf-1}
    taints: [{key: team, value: "{node}", effect: NoSchedule}]
    capacity: {cpu: 224, memory: 1.5Ti}
    devices: [h100-8]
    deviations: [{from: 2, cordoned: true, missing: [pci-0000-d5-00-0], occupied: [gpu-3]}]
  - {name: tray, labels: {nvidia.com/gpu.clique: rack.1}, capacity: {cpu: 144}, devices: [gb200-tray]}
  - {name: mig, capacity: {cpu: 500m}, devices: [h100-mig]}
  - {name: efa, capacity: {cpu: 192}, devices: [p5-efa]}
  - {name: tpu, capacity: {cpu: 208}, devices: [tpu-v5p]}
`

// A generated fleet is the same every time, and reads back as the same fleet.
func TestWrite_ReadsBackAsTheSameFleet(t *testing.T) {
	source, err := fleet.Source(fleet.Default)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{fleet.Default: string(source), "every-model": everyModel} {
		opened, err := fleet.Read(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var first bytes.Buffer
		if err := fleet.Write(&first, opened); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), name+".yaml")
		if err := os.WriteFile(path, first.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := fleet.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		again.About = opened.About // which is no Kubernetes object's
		if !apiequality.Semantic.DeepEqual(opened, again) {
			t.Errorf("%s: what was generated is another fleet", name)
		}
		var second bytes.Buffer
		if err := fleet.Write(&second, again); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: generated again, it has other bytes", name)
		}
	}
}
