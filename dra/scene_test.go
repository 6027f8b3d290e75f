package dra_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/dra"
)

// scene is a small cluster with everything that the device API knows, and the claims of one pod.
type scene struct {
	nodes   []*corev1.Node
	slices  []*resourcev1.ResourceSlice
	classes []*resourcev1.DeviceClass
	taken   []*resourcev1.ResourceClaim
	claims  []*resourcev1.ResourceClaim
}

func (s *scene) class(name string) *resourcev1.DeviceClass {
	for _, c := range s.classes {
		if c.Name == name {
			return c
		}
	}
	return nil
}

func (s *scene) fleet() dra.Fleet {
	return dra.Fleet{Inventory: dra.NewInventory(s.slices, s.nodes...), Ledger: dra.NewLedger(s.taken...)}
}

// String writes the scene as YAML, with fields that are always the same left out.
func (s *scene) String() string {
	var b strings.Builder
	write := func(what string, o any) {
		text, err := yaml.Marshal(o)
		if err != nil {
			text = []byte(err.Error())
		}
		fmt.Fprintf(&b, "--- %s\n%s", what, text)
	}
	for _, o := range s.slices {
		write(o.Name, o.Spec)
	}
	for _, o := range s.taken {
		write("taken by "+o.Name, o.Status.Allocation.Devices.Results)
	}
	for _, o := range s.claims {
		write("wanted by "+o.Name, o.Spec.Devices)
	}
	return b.String()
}

// native is the allocator as the in-tree plugin uses it: all slices of the cluster, all that is taken.
type native struct {
	*scene

	compiled *cel.Cache
}

func (n native) Get(name string) (*resourcev1.DeviceClass, error) {
	if c := n.class(name); c != nil {
		return c, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "deviceclasses"}, name)
}

func (n native) List() ([]*resourcev1.DeviceClass, error) { return n.classes, nil }

// pods gives one pod after another to the node until the next does not fit; at most the limit.
func (n native) pods(ctx context.Context, t failer, node *corev1.Node, limit int) int {
	t.Helper()
	taken := n.taken
	for pods := range limit {
		a, err := structured.NewAllocator(ctx, dra.DefaultFeatures(), gather(taken), n, n.slices, n.compiled)
		if err != nil {
			t.Fatalf("new allocator: %v", err)
		}
		results, err := a.Allocate(ctx, node, n.claims)
		if err != nil || results == nil {
			return pods
		}
		for i := range results {
			taken = append(slices.Clip(taken), &resourcev1.ResourceClaim{
				ObjectMeta: metav1.ObjectMeta{UID: types.UID(fmt.Sprint("native", pods, i))},
				Status:     resourcev1.ResourceClaimStatus{Allocation: &results[i]},
			})
		}
	}
	return limit
}

// failer is a test of any kind.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

var (
	_ failer = (*testing.T)(nil)
	_ failer = (*testing.B)(nil)
)

// gather returns the devices that claims have taken, as the in-tree plugin computes it.
func gather(claims []*resourcev1.ResourceClaim) structured.AllocatedState {
	s := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[structured.SharedDeviceID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, c := range claims {
		for _, r := range c.Status.Allocation.Devices.Results {
			id := structured.MakeDeviceID(r.Driver, r.Pool, r.Device)
			switch {
			case r.AdminAccess != nil && *r.AdminAccess:
			case r.ShareID != nil:
				s.AllocatedSharedDeviceIDs.Insert(structured.MakeSharedDeviceID(id, r.ShareID))
				if r.ConsumedCapacity != nil {
					s.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, r.ConsumedCapacity))
				}
			default:
				s.AllocatedDevices.Insert(id)
			}
		}
	}
	return s
}

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

// addPool publishes a pool: devices in one or two slices, counters in another, sometimes an older generation or a slice
// that is missing.
func (s *scene) addPool(r *rand.Rand, driver, name string, reach func(*resourcev1.ResourceSliceSpec)) {
	counted := r.IntN(4) == 0
	devices := make([]resourcev1.Device, 2+r.IntN(5))
	for i := range devices {
		devices[i] = drawDevice(r, fmt.Sprintf("d%d", i), name)
		if counted {
			devices[i].ConsumesCounters = drawConsumption(r)
		}
	}
	specs := []resourcev1.ResourceSliceSpec{{Devices: devices}}
	if cut := len(devices) / 2; cut > 0 && r.IntN(3) == 0 {
		specs = []resourcev1.ResourceSliceSpec{{Devices: devices[:cut]}, {Devices: devices[cut:]}}
	}
	if counted {
		specs = append(specs, resourcev1.ResourceSliceSpec{SharedCounters: []resourcev1.CounterSet{
			counterSet("s0", 2+r.Int64N(4)), counterSet("s1", 2+r.Int64N(4)),
		}})
	}
	generation := r.Int64N(2)
	total := int64(len(specs))
	if r.IntN(12) == 0 {
		total++ // one is missing
	}
	if generation > 0 && r.IntN(2) == 0 {
		s.publish(driver, name, resourcev1.ResourcePool{Name: name, ResourceSliceCount: 1}, "old",
			resourcev1.ResourceSliceSpec{Devices: []resourcev1.Device{drawDevice(r, "old", name)}}, reach)
	}
	for i, spec := range specs {
		pool := resourcev1.ResourcePool{Name: name, Generation: generation, ResourceSliceCount: total}
		s.publish(driver, name, pool, strconv.Itoa(i), spec, reach)
	}
}

func (s *scene) publish(
	driver, name string, pool resourcev1.ResourcePool, suffix string,
	spec resourcev1.ResourceSliceSpec, reach func(*resourcev1.ResourceSliceSpec),
) {
	spec.Driver, spec.Pool = driver, pool
	reach(&spec)
	if len(spec.SharedCounters) > 0 && spec.PerDeviceNodeSelection != nil {
		spec.PerDeviceNodeSelection, spec.AllNodes = nil, new(true)
	}
	s.slices = append(s.slices, &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: strings.Join([]string{name, driver, suffix}, "-")}, Spec: spec,
	})
}

func counterSet(name string, size int64) resourcev1.CounterSet {
	return resourcev1.CounterSet{Name: name, Counters: map[string]resourcev1.Counter{
		"memory": {Value: *resource.NewQuantity(size, resource.DecimalSI)},
		"lane":   {Value: resource.MustParse("1")},
	}}
}

func drawConsumption(r *rand.Rand) []resourcev1.DeviceCounterConsumption {
	var all []resourcev1.DeviceCounterConsumption
	for set := range 2 {
		if len(all) == 0 && set == 1 || r.IntN(2) == 0 {
			counters := map[string]resourcev1.Counter{
				"memory": {Value: *resource.NewQuantity(1+r.Int64N(3), resource.DecimalSI)},
			}
			if r.IntN(4) == 0 {
				counters["lane"] = resourcev1.Counter{Value: resource.MustParse("1")}
			}
			all = append(all, resourcev1.DeviceCounterConsumption{CounterSet: fmt.Sprint("s", set), Counters: counters})
		}
	}
	return all
}

func drawDevice(r *rand.Rand, name, pool string) resourcev1.Device {
	d := resourcev1.Device{Name: name, Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
		"uuid": {StringValue: new(pool + name)},
	}}
	set := func(name resourcev1.QualifiedName, a resourcev1.DeviceAttribute) {
		if r.IntN(10) > 0 {
			d.Attributes[name] = a
		}
	}
	set(root, resourcev1.DeviceAttribute{StringValue: new(fmt.Sprint("r", r.IntN(3)))})
	set(numa, resourcev1.DeviceAttribute{IntValue: new(r.Int64N(2))})
	// A class that reads the size fails where it is missing.
	if r.IntN(30) > 0 {
		d.Attributes["test.example/size"] = resourcev1.DeviceAttribute{IntValue: new(r.Int64N(4))}
	}
	if r.IntN(3) == 0 {
		d.Attributes["test.example/part"] = resourcev1.DeviceAttribute{BoolValue: new(true)}
	}
	if r.IntN(3) == 0 {
		d.Capacity = map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": drawCapacity(r)}
		if r.IntN(2) == 0 {
			d.Capacity["cores"] = drawCapacity(r)
		}
		if r.IntN(2) == 0 {
			d.AllowMultipleAllocations = new(true)
		}
	}
	if r.IntN(8) == 0 {
		d.Taints = []resourcev1.DeviceTaint{{Key: "sick", Value: "yes", Effect: []resourcev1.DeviceTaintEffect{
			resourcev1.DeviceTaintEffectNone, resourcev1.DeviceTaintEffectNoSchedule,
		}[r.IntN(2)]}}
	}
	if r.IntN(20) == 0 {
		d.BindingConditions, d.BindingFailureConditions = []string{"attached"}, []string{"failed"}
		d.BindsToNode = new(true)
	}
	return d
}

func drawCapacity(r *rand.Rand) resourcev1.DeviceCapacity {
	c := resourcev1.DeviceCapacity{Value: *resource.NewQuantity(1+r.Int64N(6), resource.DecimalSI)}
	switch r.IntN(3) {
	case 0:
		c.RequestPolicy = &resourcev1.CapacityRequestPolicy{
			Default: new(resource.MustParse("1")),
			ValidRange: &resourcev1.CapacityRequestPolicyRange{
				Min:  new(resource.MustParse("1")),
				Step: new(resource.MustParse("2")),
			},
		}
	case 1:
		c.RequestPolicy = &resourcev1.CapacityRequestPolicy{
			Default: new(
				resource.MustParse("1"),
			),
			ValidValues: []resource.Quantity{resource.MustParse("1"), resource.MustParse("3")},
		}
	}
	return c
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
