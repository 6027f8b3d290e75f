package dra_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"

	"github.com/lockstep-project/lockstep/dra"
)

// almost are the cases that fail by one device.
func almost(b *testing.B) []struct {
	name   string
	slices []*resourcev1.ResourceSlice
	taken  []*resourcev1.ResourceClaim
	claim  *resourcev1.ResourceClaim
} {
	b.Helper()
	const pcie = "resource.kubernetes.io/pcieRoot"
	h100 := sample(b, "h100-node.yaml")
	foreign := rename(h100, "foreign")
	foreign[1].Spec.Devices[7].Attributes[pcie] = resourcev1.DeviceAttribute{StringValue: new("pci0000:ff")}
	const slice = ` mig.nvidia.com|device.attributes["gpu.nvidia.com"].profile == "2g.20gb"`
	var gpus, slices []string
	for i := range 25 {
		slices = append(slices, fmt.Sprintf("r%d 1", i)+slice)
	}
	for i := range 8 {
		gpus = append(gpus, fmt.Sprintf("r%d 1 gpu.nvidia.com", i))
	}
	nic := []*resourcev1.ResourceClaim{holder("h", "dra.net/h100-000/pci-0000-0c-00-0")}
	gpu := []*resourcev1.ResourceClaim{holder("h", "gpu.nvidia.com/h100-000/gpu-3")}
	return []struct {
		name   string
		slices []*resourcev1.ResourceSlice
		taken  []*resourcev1.ResourceClaim
		claim  *resourcev1.ResourceClaim
	}{
		{"8-pairs-one-card-taken", h100, nic, pairs(8, pcie)},
		{"8-pairs-one-card-at-a-foreign-root", foreign, nil, pairs(8, pcie)},
		{"8-gpus-one-taken", h100, gpu, claim("c", "gpu 8 gpu.nvidia.com")},
		{"8-requests-one-gpu-taken", h100, gpu, claim("c", gpus...)},
		{"13-slices-of-4-gpus", partitioned(b, 4), nil, claim("c", "mig 13"+slice)},
		{"25-slices-of-8-gpus", partitioned(b, 8), nil, claim("c", "mig 25"+slice)},
		{"25-requests-for-slices-of-8-gpus", partitioned(b, 8), nil, claim("c", slices...)},
	}
}

// patience is the time for which the native allocator may search: a second longer than kube-scheduler lets it.
const patience = 11 * time.Second

// BenchmarkAlmost compares the time to a refusal: ours with an empty cache (but compiled expressions), the native
// allocator's with its input prepared.
func BenchmarkAlmost(b *testing.B) {
	for _, c := range almost(b) {
		s := &scene{
			nodes: []*corev1.Node{node(*c.slices[0].Spec.NodeName)}, slices: c.slices, classes: standard(),
			taken: c.taken, claims: []*resourcev1.ResourceClaim{c.claim},
		}
		b.Run(c.name+"/ours", func(b *testing.B) {
			warm := dra.NewFitter(dra.DefaultFeatures(), 0)
			warm.Demand(lookup, c.claim)
			for b.Loop() {
				b.StopTimer()
				f := warm.Forgetful()
				d := f.Demand(lookup, c.claim)
				fleet := s.fleet()
				b.StartTimer()
				fit, err := f.Fit(b.Context(), fleet, s.nodes[0].Name, d)
				if err != nil || fit.Pods != 0 || fit.Unknown {
					b.Fatal(fit, err)
				}
			}
		})
		b.Run(c.name+"/native", func(b *testing.B) {
			n := native{s, cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})}
			for _, class := range standard() {
				for _, selector := range class.Spec.Selectors {
					n.compiled.GetOrCompile(selector.CEL.Expression)
				}
			}
			for b.Loop() {
				ctx, cancel := context.WithTimeout(b.Context(), patience)
				a, err := structured.NewAllocator(ctx, dra.DefaultFeatures(), gather(n.taken), n, n.slices, n.compiled)
				if err != nil {
					b.Fatal(err)
				}
				results, err := a.Allocate(ctx, s.nodes[0], n.claims)
				cancel()
				if results != nil || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					b.Fatal(results, err)
				}
			}
		})
	}
}

// fleet returns that many H100 nodes; every second has something taken: one of seven things.
func fleet(b *testing.B, nodes int) (*scene, dra.Fleet) {
	b.Helper()
	h100 := sample(b, "h100-node.yaml")
	s := &scene{classes: standard()}
	for i := range nodes {
		name := fmt.Sprintf("node-%04d", i)
		s.nodes = append(s.nodes, node(name))
		s.slices = append(s.slices, rename(h100, name)...)
		if i%2 == 0 {
			var devices []string
			for g := range 1 + i/2%7 {
				devices = append(devices, fmt.Sprintf("gpu.nvidia.com/%s/gpu-%d", name, g))
			}
			s.taken = append(s.taken, holder("job-"+name, devices...))
		}
	}
	return s, s.fleet()
}

// BenchmarkSweep asks 4,000 nodes for 8 aligned pairs: for the first time, again, and after one node changed.
func BenchmarkSweep(b *testing.B) {
	s, fleet := fleet(b, 4000)
	want := pairs(8, "resource.kubernetes.io/pcieRoot")
	sweep := func(b *testing.B, f *dra.Fitter, d *dra.Demand) {
		b.Helper()
		fits := 0
		for _, n := range s.nodes {
			fit, err := f.Fit(b.Context(), fleet, n.Name, d)
			if err != nil {
				b.Fatal(err)
			}
			fits += fit.Pods
		}
		if fits != len(s.nodes)/2 {
			b.Fatalf("%d pods fit", fits)
		}
	}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			f := dra.NewFitter(dra.DefaultFeatures(), 0)
			d := f.Demand(lookup, want)
			fleet = s.fleet()
			b.StartTimer()
			sweep(b, f, d)
			b.ReportMetric(float64(f.Classes(fleet, d)), "classes")
		}
	})
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	d := f.Demand(lookup, want)
	sweep(b, f, d)
	b.Run("again", func(b *testing.B) {
		for b.Loop() {
			sweep(b, f, d)
		}
	})
	b.Run("native", func(b *testing.B) {
		n := native{s, cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})}
		n.claims = []*resourcev1.ResourceClaim{want}
		a, err := structured.NewAllocator(b.Context(), dra.DefaultFeatures(), gather(nil), n, n.slices, n.compiled)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			for _, at := range s.nodes {
				if results, err := a.Allocate(b.Context(), at, n.claims); err != nil || results == nil {
					b.Fatal(results, err)
				}
			}
		}
	})
}

// BenchmarkUpdate changes one node of 4,000 and evaluates it again: a claim is allocated and released, a slice is
// published anew.
func BenchmarkUpdate(b *testing.B) {
	s, fleet := fleet(b, 4000)
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	d := f.Demand(lookup, pairs(8, "resource.kubernetes.io/pcieRoot"))
	ask := func(b *testing.B, node string) {
		b.Helper()
		if _, err := f.Fit(b.Context(), fleet, node, d); err != nil {
			b.Fatal(err)
		}
	}
	for _, n := range s.nodes {
		ask(b, n.Name)
	}
	const name = "node-0001"
	c := holder("new", "gpu.nvidia.com/"+name+"/gpu-5")
	b.Run("claim", func(b *testing.B) {
		for b.Loop() {
			fleet.Ledger.Set(c)
			ask(b, name)
			fleet.Ledger.Remove(c.UID)
			ask(b, name)
		}
	})
	b.Run("slice", func(b *testing.B) {
		changed := rename(sample(b, "h100-node.yaml"), name)[0]
		for b.Loop() {
			fleet.Inventory.SetSlice(changed)
			ask(b, name)
		}
	})
	b.Run("what-if", func(b *testing.B) {
		victim := s.taken[0].UID
		for b.Loop() {
			branch := dra.Fleet{Inventory: fleet.Inventory, Ledger: fleet.Ledger.WithoutClaims(victim)}
			if fit, err := f.Fit(b.Context(), branch, "node-0000", d); err != nil || fit.Pods != 1 {
				b.Fatal(fit, err)
			}
		}
	})
}
