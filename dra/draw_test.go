package dra_test

import (
	"fmt"
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	root = "resource.kubernetes.io/pcieRoot"
	numa = "test.example/numa"
)

// draw makes a scene. The number of choices is small everywhere, so that devices meet in every way.
func draw(r *rand.Rand) *scene {
	s := &scene{classes: []*resourcev1.DeviceClass{
		deviceClass("gpu", `device.driver == "gpu.example"`),
		deviceClass("nic", `device.driver == "nic.example"`),
		deviceClass("any"),
		deviceClass("big", `device.attributes["test.example"].size >= 2`),
		deviceClass("part", `"part" in device.attributes["test.example"]`),
	}}
	nodes := 2 + r.IntN(2)
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		s.nodes = append(s.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"zone": string(rune('a' + r.IntN(2)))},
		}})
		s.addPool(r, "gpu.example", name, func(spec *resourcev1.ResourceSliceSpec) { spec.NodeName = &name })
		if r.IntN(2) == 0 {
			s.addPool(r, "nic.example", name, func(spec *resourcev1.ResourceSliceSpec) { spec.NodeName = &name })
		}
	}
	if r.IntN(3) == 0 {
		s.addPool(r, "nic.example", "fabric", wideReach(r))
	}
	s.take(r)
	for i := range 1 + r.IntN(2)*r.IntN(2) {
		s.claims = append(s.claims, drawClaim(r, i))
	}
	return s
}

// drawPairs makes a node with GPUs and network cards, nearly one of each for every root, and a pod that wants pairs:
// claims that almost fit.
func drawPairs(r *rand.Rand) *scene {
	s := &scene{nodes: []*corev1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "n0"}}}, classes: []*resourcev1.DeviceClass{
		deviceClass("gpu", `device.driver == "gpu.example"`), deviceClass("nic", `device.driver == "nic.example"`),
	}}
	sides := 2 + r.IntN(4)
	for _, driver := range []string{"gpu.example", "nic.example"} {
		var spec resourcev1.ResourceSliceSpec
		for i := range sides + r.IntN(2) {
			at := i % sides
			if r.IntN(8) == 0 {
				at = r.IntN(sides)
			}
			spec.Devices = append(spec.Devices, resourcev1.Device{
				Name: fmt.Sprint("d", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					root: {StringValue: new(fmt.Sprint("r", at))}, numa: {IntValue: new(int64(at * 2 / sides))},
				},
			})
		}
		s.publish(driver, "n0", resourcev1.ResourcePool{Name: "n0", ResourceSliceCount: 1}, "0", spec,
			func(spec *resourcev1.ResourceSliceSpec) { spec.NodeName = new("n0") })
	}
	s.take(r)
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c"}}
	wanted := 1 + r.IntN(sides)
	attributes := [][]string{{root}, {numa}, {root, numa}}[r.IntN(3)]
	for i := range wanted {
		pair := []string{fmt.Sprint("gpu", i), fmt.Sprint("nic", i)}
		for _, name := range pair {
			c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, resourcev1.DeviceRequest{
				Name: name, Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: name[:3], AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
				},
			})
		}
		for _, a := range attributes {
			c.Spec.Devices.Constraints = append(c.Spec.Devices.Constraints,
				resourcev1.DeviceConstraint{Requests: pair, MatchAttribute: new(resourcev1.FullyQualifiedName(a))})
		}
	}
	s.claims = []*resourcev1.ResourceClaim{c}
	return s
}

func deviceClass(name string, expressions ...string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.Spec.Selectors = selectors(expressions...)
	return c
}

func selectors(expressions ...string) []resourcev1.DeviceSelector {
	var all []resourcev1.DeviceSelector
	for _, e := range expressions {
		all = append(all, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: e}})
	}
	return all
}

// wideReach makes slices reach several nodes.
func wideReach(r *rand.Rand) func(*resourcev1.ResourceSliceSpec) {
	zone := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: "In", Values: []string{"a"}}},
	}}}
	switch r.IntN(3) {
	case 0:
		return func(spec *resourcev1.ResourceSliceSpec) { spec.AllNodes = new(true) }
	case 1:
		return func(spec *resourcev1.ResourceSliceSpec) { spec.NodeSelector = zone }
	}
	return func(spec *resourcev1.ResourceSliceSpec) {
		spec.PerDeviceNodeSelection = new(true)
		for i := range spec.Devices {
			switch i % 3 {
			case 0:
				spec.Devices[i].NodeName = new("n0")
			case 1:
				spec.Devices[i].AllNodes = new(true)
			default:
				spec.Devices[i].NodeSelector = zone
			}
		}
	}
}

// take gives some devices, or shares of them, to claims.
func (s *scene) take(r *rand.Rand) {
	for _, slice := range s.slices {
		for _, d := range slice.Spec.Devices {
			if r.IntN(7) > 0 {
				continue
			}
			result := resourcev1.DeviceRequestAllocationResult{
				Request: "r", Driver: slice.Spec.Driver, Pool: slice.Spec.Pool.Name, Device: d.Name,
			}
			switch {
			case r.IntN(8) == 0:
				result.AdminAccess = new(true)
			case d.AllowMultipleAllocations != nil:
				result.ShareID = new(types.UID(fmt.Sprint("share", r.Uint64())))
				if r.IntN(4) > 0 {
					result.ConsumedCapacity = map[resourcev1.QualifiedName]resource.Quantity{}
					for name := range d.Capacity {
						result.ConsumedCapacity[name] = resource.MustParse("1")
					}
				}
			}
			name := fmt.Sprint("taken", len(s.taken))
			s.taken = append(s.taken, &resourcev1.ResourceClaim{
				ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
				Status: resourcev1.ResourceClaimStatus{Allocation: &resourcev1.AllocationResult{
					Devices: resourcev1.DeviceAllocationResult{
						Results: []resourcev1.DeviceRequestAllocationResult{result},
					},
				}},
			})
		}
	}
}

func drawClaim(r *rand.Rand, i int) *resourcev1.ResourceClaim {
	name := fmt.Sprint("c", i)
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	var names []string
	for n := range 1 + r.IntN(1+r.IntN(4)) {
		request := resourcev1.DeviceRequest{Name: fmt.Sprint("q", n)}
		names = append(names, request.Name)
		if r.IntN(5) == 0 {
			for a := range 2 {
				e := drawRequest(r)
				request.FirstAvailable = append(request.FirstAvailable, resourcev1.DeviceSubRequest{
					Name: fmt.Sprint("a", a), DeviceClassName: e.DeviceClassName, Selectors: e.Selectors,
					AllocationMode: e.AllocationMode, Count: e.Count, Tolerations: e.Tolerations, Capacity: e.Capacity,
				})
			}
			names = append(names, request.Name+"/a0")
		} else {
			e := drawRequest(r)
			if r.IntN(12) == 0 {
				e.AdminAccess = new(true)
			}
			request.Exactly = &e
		}
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, request)
	}
	for range r.IntN(1 + r.IntN(3)) {
		var constraint resourcev1.DeviceConstraint
		for _, n := range names {
			if r.IntN(2) == 0 {
				constraint.Requests = append(constraint.Requests, n)
			}
		}
		attribute := new(resourcev1.FullyQualifiedName([]string{root, numa, numa, "gpu.example/uuid"}[r.IntN(4)]))
		if r.IntN(3) == 0 {
			constraint.DistinctAttribute = attribute
		} else {
			constraint.MatchAttribute = attribute
		}
		c.Spec.Devices.Constraints = append(c.Spec.Devices.Constraints, constraint)
	}
	return c
}

func drawRequest(r *rand.Rand) resourcev1.ExactDeviceRequest {
	e := resourcev1.ExactDeviceRequest{
		DeviceClassName: []string{"gpu", "gpu", "gpu", "nic", "any", "any", "any", "big", "part"}[r.IntN(9)],
		AllocationMode:  resourcev1.DeviceAllocationModeExactCount, Count: 1 + r.Int64N(1+r.Int64N(3)),
	}
	if r.IntN(8) == 0 {
		e.AllocationMode, e.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	if r.IntN(4) == 0 {
		e.Selectors = selectors([]string{
			`device.attributes["test.example"].?numa.orValue(0) == 0`,
			`device.attributes["test.example"].exists(k, k == "part")`,
			`cel.bind(a, device.attributes["test.example"], has(a.size) && a.size > 0)`,
			`device.allowMultipleAllocations == true`,
		}[r.IntN(4)])
	}
	if r.IntN(4) == 0 {
		e.Tolerations = []resourcev1.DeviceToleration{{Key: "sick", Operator: resourcev1.DeviceTolerationOpExists}}
	}
	if r.IntN(5) == 0 {
		e.Capacity = &resourcev1.CapacityRequirements{Requests: map[resourcev1.QualifiedName]resource.Quantity{
			"memory": *resource.NewQuantity(1+r.Int64N(3), resource.DecimalSI),
		}}
		if r.IntN(2) == 0 {
			e.Capacity.Requests["cores"] = *resource.NewQuantity(1+r.Int64N(3), resource.DecimalSI)
		}
	}
	return e
}
