package dra_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
