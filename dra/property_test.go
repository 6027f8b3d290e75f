package dra_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/dynamic-resource-allocation/cel"
	"pgregory.net/rapid"

	"github.com/lockstep-project/lockstep/dra"
)

// each holds a property against scenes drawn from two numbers that rapid draws (see topology's tests for why).
func each(t *testing.T, scenes int, property func(*rapid.T, *scene, *rand.Rand)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64()
		r := rand.New(rand.NewPCG(seed.Draw(t, "seed"), seed.Draw(t, "stream")))
		for range scenes {
			property(t, draw(r), r)
		}
	})
}

// drawShares makes a node with shareable devices of two capacities, and a pod whose requests draw on them unequally.
func drawShares(r *rand.Rand) *scene {
	s := &scene{nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}}, classes: []*resourcev1.DeviceClass{
		deviceClass("any"),
	}}
	both := func(most int64) map[resourcev1.QualifiedName]resource.Quantity {
		return map[resourcev1.QualifiedName]resource.Quantity{
			"memory": *resource.NewQuantity(1+r.Int64N(most), resource.DecimalSI),
			"cores":  *resource.NewQuantity(1+r.Int64N(most), resource.DecimalSI),
		}
	}
	var spec resourcev1.ResourceSliceSpec
	for i := range 1 + r.IntN(2) {
		d := resourcev1.Device{
			Name: fmt.Sprint("d", i), AllowMultipleAllocations: new(true),
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{numa: {IntValue: new(int64(i))}},
			Capacity:   map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{},
		}
		for name, size := range both(8) {
			d.Capacity[name] = resourcev1.DeviceCapacity{Value: size}
		}
		spec.Devices = append(spec.Devices, d)
	}
	s.publish("gpu.example", "n0", resourcev1.ResourcePool{Name: "n0", ResourceSliceCount: 1}, "0", spec,
		func(spec *resourcev1.ResourceSliceSpec) { spec.NodeName = new("n0") })
	s.take(r)
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c"}}
	for i := range 2 + r.IntN(3) {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, resourcev1.DeviceRequest{
			Name: fmt.Sprint("q", i), Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: "any", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
				Capacity: &resourcev1.CapacityRequirements{Requests: both(3)},
			},
		})
	}
	if r.IntN(2) == 0 {
		c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{
			{MatchAttribute: new(resourcev1.FullyQualifiedName(numa))},
		}
	}
	s.claims = []*resourcev1.ResourceClaim{c}
	return s
}

// TestFit_EqualsAllocate is the promise of this room: however the devices look, whatever the claims ask for, a node
// takes as many pods as Kubernetes' allocator would give devices to, one after another, knowing the whole cluster. One
// fitter answers for all scenes, so nodes that it takes for equal have to be.
func TestFit_EqualsAllocate(t *testing.T) {
	const limit = 3
	fitter := dra.NewFitter(dra.DefaultFeatures(), 1<<20)
	compiled := cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})
	// verdicts counts the answers by sort: the scenes must not all be of one sort.
	verdicts := map[string]int{}
	each(t, 30, func(t *rapid.T, s *scene, r *rand.Rand) {
		switch r.IntN(6) {
		case 0, 1:
			s = drawPairs(r)
		case 2:
			s = drawShares(r)
		}
		fleet := s.fleet()
		d := fitter.Demand(s.class, s.claims...)
		for _, n := range s.nodes {
			want := native{s, compiled}.pods(t.Context(), t, n, limit)
			fit, err := fitter.Fit(t.Context(), fleet, n.Name, d)
			if err != nil {
				t.Fatalf("fit: %v", err)
			}
			if min(fit.Pods, limit) != want {
				t.Fatalf(
					"%s\nnode %s %v: fit says %+v, the allocator gives devices to %d",
					s,
					n.Name,
					n.Labels,
					fit,
					want,
				)
			}
			verdicts[sort(fit)]++
		}
	})
	t.Log(verdicts)
	for _, sort := range []string{"fits", "search", "condition", "fault"} {
		if verdicts[sort] == 0 {
			t.Errorf("no scene of the sort %q", sort)
		}
	}
}

// sort names the part of the fitter that gave the answer.
func sort(fit dra.Fit) string {
	switch {
	case fit.Pods > 0:
		return "fits"
	case strings.Contains(fit.Rule, "fails:"):
		return "fault"
	case strings.HasPrefix(fit.Rule, "no combination"):
		return "search"
	case strings.Contains(fit.Rule, "cannot all be had"):
		return "all"
	case strings.HasPrefix(fit.Rule, "allocate"):
		return "refused: " + fit.Rule
	}
	return "condition"
}
