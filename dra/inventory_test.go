package dra_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-project/lockstep/dra"
)

// TestInventory_PoolProblemsAreNumbered: a pool's problem is reported with numbers, and an inconsistent pool serves no
// device.
func TestInventory_PoolProblemsAreNumbered(t *testing.T) {
	type slices = []*resourcev1.ResourceSlice
	for _, c := range []struct {
		name   string
		change func(mig slices) slices
		want   string
		pods   int
	}{
		{"nothing", func(all slices) slices { return all }, "", 2},
		{"an older generation beside", func(all slices) slices {
			old := all[1].DeepCopy()
			old.Name, old.Spec.Pool.Generation = "old", 0
			return append(all, old)
		}, "", 2},
		{
			"a slice is missing", func(all slices) slices { return all[1:] },
			"resource pool gpu.nvidia.com/mig-000: of generation 1, 1 of 2 slices are there", 0,
		},
		{"a new generation has begun", func(all slices) slices {
			begun := all[0].DeepCopy()
			begun.Name, begun.Spec.Pool.Generation = "new", 2
			return append(all, begun)
		}, "resource pool gpu.nvidia.com/mig-000: its generations disagree: of generation 2, 1 of 2 slices are there, " +
			"2 slices of older ones remain", 0},
		{"slices disagree", func(all slices) slices {
			all[1].Spec.Pool.ResourceSliceCount = 3
			return all
		}, "resource pool gpu.nvidia.com/mig-000: generation 1 has slices that disagree about their number: " +
			"mig-000-gpu.nvidia.com-0 says 2, mig-000-gpu.nvidia.com-1 says 3", 0},
		{"a device twice", func(all slices) slices {
			all[1].Spec.Devices[1].Name = all[1].Spec.Devices[0].Name
			return all
		}, "resource pool gpu.nvidia.com/mig-000: device gpu-0 is there twice", 0},
		{"counters that are not there", func(all slices) slices {
			all[0].Spec.SharedCounters[1].Name = "other"
			return all
		}, "resource pool gpu.nvidia.com/mig-000: device gpu-1 draws on counter memory of set gpu-1-counter-set, which is not there", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			inv := dra.NewInventory(c.change(sample(t, "h100-mig-node.yaml")), node("mig-000"))
			var lines []string
			for _, p := range inv.Problems() {
				lines = append(lines, p.String())
				if fmt.Sprint(p.Nodes) != "[mig-000]" {
					t.Errorf("nodes %v", p.Nodes)
				}
			}
			if got := strings.Join(lines, "\n"); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			f := dra.NewFitter(dra.DefaultFeatures(), 0)
			fleet := dra.Fleet{Inventory: inv, Ledger: dra.NewLedger()}
			fit, err := f.Fit(t.Context(), fleet, "mig-000", f.Demand(lookup, claim("c", "gpu 1 gpu.nvidia.com")))
			if err != nil || fit.Pods != c.pods {
				t.Errorf("fit: %+v, %v", fit, err)
			}
			_, what, _ := strings.Cut(c.want, "mig-000: ")
			if c.pods == 0 && !strings.Contains(fit.Rule, what) {
				t.Errorf("the rule does not say what is wrong: %s", fit.Rule)
			}
		})
	}
}

// TestInventory_NodesOfOneModelAreOneKind: nodes of one model are one kind, as long as no request distinguishes them.
func TestInventory_NodesOfOneModelAreOneKind(t *testing.T) {
	const uuid = `gpu 1 gpu.nvidia.com|device.attributes["gpu.nvidia.com"].uuid `
	var all []*resourcev1.ResourceSlice
	var nodes []*corev1.Node
	for i := range 6 {
		name := fmt.Sprint("n", i)
		nodes = append(nodes, node(name))
		all = append(all, rename(sample(t, "h100-node.yaml"), name)...)
	}
	fleet := dra.Fleet{Inventory: dra.NewInventory(all, nodes...), Ledger: dra.NewLedger(
		holder(
			"a",
			"gpu.nvidia.com/n0/gpu-0",
		),
		holder("b", "gpu.nvidia.com/n1/gpu-0"),
		holder("c", "gpu.nvidia.com/n2/gpu-1"),
	)}
	for _, c := range []struct {
		name  string
		claim *resourcev1.ResourceClaim
		want  int
	}{
		{"the same devices free", claim("c", "gpu 8 gpu.nvidia.com"), 3},
		{"aligned pairs", pairs(8, "resource.kubernetes.io/pcieRoot"), 3},
		{"a UUID", claim("c", uuid+`== "GPU-1"`), 6},
		{"a UUID, bound to a name", claim("c", `gpu 1 gpu.nvidia.com|cel.bind(a, device.attributes["gpu.nvidia.com"], a.uuid != "")`), 6},
		{"a UUID, if there is one", claim("c", `gpu 1 gpu.nvidia.com|device.attributes["gpu.nvidia.com"].?uuid.orValue("") != ""`), 6},
		{"whether there is a UUID", claim("c", `gpu 1 gpu.nvidia.com|"uuid" in device.attributes["gpu.nvidia.com"]`), 6},
		{"a name that is computed", claim("c", `gpu 1 gpu.nvidia.com|device.attributes["gpu.nvidia.com"]["uu" + "id"] != ""`), 6},
		{"all attributes", claim("c", `gpu 1 gpu.nvidia.com|device.attributes["gpu.nvidia.com"].all(k, k != "color")`), 6},
		{"the number of attributes", claim("c", `gpu 1 gpu.nvidia.com|size(device.attributes["gpu.nvidia.com"]) > 1`), 6},
		{"a comparison of maps", claim("c", `gpu 1 gpu.nvidia.com|device.attributes["gpu.nvidia.com"] != device.attributes["x"]`), 6},
		{"what has a type of its own", claim("c",
			`gpu 1 gpu.nvidia.com|device.attributes["gpu.nvidia.com"].driverVersion.isGreaterThan(semver("1.0.0"))`), 3},
		{"capacity", claim("c", `gpu 1 gpu.nvidia.com|device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("1Gi")) > 0`), 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := dra.NewFitter(dra.DefaultFeatures(), 0)
			d := f.Demand(lookup, c.claim)
			if got := f.Classes(fleet, d); got != c.want || d.Fault != "" {
				t.Errorf("got %d, want %d %s", got, c.want, d.Fault)
			}
		})
	}
}

// A pool of one node is published there, one of selected nodes nowhere in particular.
func TestInventory_Publishers(t *testing.T) {
	here, wide := sample(t, "h100-node.yaml"), rename(sample(t, "h100-node.yaml"), "switch")
	for _, s := range wide {
		s.Spec.NodeName, s.Spec.AllNodes = nil, new(true)
	}
	inv := dra.NewInventory(slices.Concat(rename(here, "n1"), rename(here, "n0"), wide))
	a := holder("a", "gpu.nvidia.com/n1/gpu-0", "gpu.nvidia.com/n0/gpu-1", "gpu.nvidia.com/n0/gpu-2",
		"gpu.nvidia.com/switch/gpu-0", "gpu.nvidia.com/unknown/gpu-0")
	if got := inv.Publishers(a.Status.Allocation); !slices.Equal(got, []string{"n0", "n1"}) {
		t.Errorf("its devices are published by %v", got)
	}
}

// TestDeviceTaints: a tainted device serves only claims that tolerate it.
func TestDeviceTaints(t *testing.T) {
	all := sample(t, "h100-node.yaml")
	all[0].Spec.Devices[3].Taints = []resourcev1.DeviceTaint{
		{Key: "ecc", Effect: resourcev1.DeviceTaintEffectNoExecute},
	}
	all[0].Spec.Devices[4].Taints = []resourcev1.DeviceTaint{{Key: "seen", Effect: resourcev1.DeviceTaintEffectNone}}
	fleet := dra.Fleet{Inventory: dra.NewInventory(all, node("h100-000")), Ledger: dra.NewLedger()}
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	strict, tolerant := claim("s", "gpu 8 gpu.nvidia.com"), claim("t", "gpu 8 gpu.nvidia.com")
	tolerant.Spec.Devices.Requests[0].Exactly.Tolerations = []resourcev1.DeviceToleration{
		{Key: "ecc", Operator: "Exists"},
	}
	for want, c := range []*resourcev1.ResourceClaim{strict, tolerant} {
		if fit, err := f.Fit(t.Context(), fleet, "h100-000", f.Demand(lookup, c)); err != nil || fit.Pods != want {
			t.Errorf("%s: %+v, %v", c.Name, fit, err)
		}
	}
}

// TestAdminAccess_FitsAnyNumberOfPods: claims for admin access take no device, so the fit is the counting limit.
func TestAdminAccess_FitsAnyNumberOfPods(t *testing.T) {
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	fleet := dra.Fleet{
		Inventory: dra.NewInventory(sample(t, "h100-node.yaml"), node("h100-000")),
		Ledger:    dra.NewLedger(),
	}
	admin := claim("admin", "gpu all gpu.nvidia.com")
	admin.Spec.Devices.Requests[0].Exactly.AdminAccess = new(true)
	if fit, err := f.Fit(
		t.Context(),
		fleet,
		"h100-000",
		f.Demand(lookup, admin),
	); err != nil ||
		fit.Pods != dra.MostPods {
		t.Errorf("administration: %+v, %v", fit, err)
	}
	if fit, err := f.Fit(t.Context(), fleet, "h100-000", f.Demand(lookup)); err != nil || fit.Pods != dra.MostPods {
		t.Errorf("no claims: %+v, %v", fit, err)
	}
}

// TestDerivedAttributes_AlignNUMA: with an attribute of its own making, a claim aligns GPUs and cards whose drivers
// name the NUMA node differently, as a GB200 tray needs.
func TestDerivedAttributes_AlignNUMA(t *testing.T) {
	features := dra.DefaultFeatures()
	features.DerivedAttributes = true
	c := pairs(4, "side.example/numa")
	for i := range c.Spec.Devices.Requests {
		expression := `device.attributes["resource.kubernetes.io"].numaNode`
		if i%2 == 1 {
			expression = `device.attributes["dra.net"].numaNode`
		}
		c.Spec.Devices.Requests[i].Exactly.DerivedAttributes = []resourcev1.DeviceDerivedAttribute{
			{Name: "side.example/numa", Expression: expression},
		}
	}
	fleet := dra.Fleet{
		Inventory: dra.NewInventory(sample(t, "gb200-tray.yaml"), node("gb200-r00-t00")),
		Ledger:    dra.NewLedger(),
	}
	f := dra.NewFitter(features, 0)
	if fit, err := f.Fit(t.Context(), fleet, "gb200-r00-t00", f.Demand(lookup, c)); err != nil || fit.Pods != 1 {
		t.Errorf("%+v, %v", fit, err)
	}
	lost := holder("x", "dra.net/gb200-r00-t00/"+sample(t, "gb200-tray.yaml")[1].Spec.Devices[0].Name)
	fleet.Ledger.Set(lost)
	if fit, err := f.Fit(t.Context(), fleet, "gb200-r00-t00", f.Demand(lookup, c)); err != nil || fit.Pods != 1 {
		t.Errorf("with a card taken: %+v, %v", fit, err)
	}
}

// TestConsumableCapacity_SharesUntilUsed: a device that several claims can have shares of takes pods until its capacity
// is used.
func TestConsumableCapacity_SharesUntilUsed(t *testing.T) {
	published, nodes := fabric(t)
	fleet := dra.Fleet{Inventory: dra.NewInventory(published, nodes...), Ledger: dra.NewLedger()}
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	for _, c := range []struct{ nodes, pods int64 }{{1, 18}, {4, 4}, {18, 1}, {19, 0}} {
		fit, err := f.Fit(t.Context(), fleet, "n0", f.Demand(lookup, nodesOfDomain(c.nodes)))
		if err != nil || fit.Pods != int(c.pods) {
			t.Errorf("%d nodes each: %+v, %v", c.nodes, fit, err)
		}
	}
	used := resource.MustParse("9")
	busy := holder("busy", "fabric.example.com/11111111-aaaa.1/clique")
	r := &busy.Status.Allocation.Devices.Results[0]
	r.ShareID, r.ConsumedCapacity = new(busy.UID), map[resourcev1.QualifiedName]resource.Quantity{"nodes": used}
	fleet.Ledger.Set(busy)
	if fit, err := f.Fit(t.Context(), fleet, "n0", f.Demand(lookup, nodesOfDomain(4))); err != nil || fit.Pods != 2 {
		t.Errorf("half of it used: %+v, %v", fit, err)
	}
}
