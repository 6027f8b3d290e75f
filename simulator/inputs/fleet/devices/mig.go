package devices

import (
	"fmt"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

const (
	migGPUs = 8
	// The memory of a GPU is divided into eight slices, each for one partition at most.
	memorySlices    = 8
	multiprocessors = "132"
)

// profile is a size in which a GPU can be partitioned.
type profile struct {
	name string
	// id is the number of NVIDIA's GPU instance profile.
	id int
	// slices is the number of memory slices of a partition; it may begin at these.
	slices                  int
	begins                  []int
	memory, multiprocessors string
}

func h100Profiles() []profile {
	return []profile{
		{"1g.10gb", 19, 1, []int{0, 1, 2, 3, 4, 5, 6}, "9984Mi", "16"},
		{"1g.20gb", 15, 2, []int{0, 2, 4, 6}, "20096Mi", "26"},
		{"2g.20gb", 14, 2, []int{0, 2, 4}, "20096Mi", "32"},
		{"3g.40gb", 9, 4, []int{0, 4}, "40448Mi", "60"},
		{"4g.40gb", 5, 4, []int{0}, "40448Mi", "64"},
		{"7g.80gb", 0, 8, []int{0}, "81152Mi", multiprocessors},
	}
}

// migNode returns the devices of a machine whose GPUs NVIDIA's driver partitions when a part is allocated (its gate
// DynamicMIG): it publishes every partition that there could be, and counters say which of them can be there together.
// Whole GPUs are published too, and draw on all of their counters.
func migNode(machine Machine) []driven {
	published := driven{driver: driverGPU}
	for i := range migGPUs {
		whole := h100(i, fmt.Sprintf("%d0", i+1))
		published.counters = append(published.counters, resourcev1.CounterSet{
			Name: whole.counterSet(), Counters: counters(0, memorySlices, whole.memory, multiprocessors),
		})
		device := whole.device(machine)
		device.Capacity["multiprocessors"] = capacity(multiprocessors)
		device.ConsumesCounters = whole.draws(0, memorySlices, whole.memory, multiprocessors)
		published.devices = append(published.devices, device)
		for _, p := range h100Profiles() {
			for _, begin := range p.begins {
				published.devices = append(published.devices, whole.partition(machine, p, begin))
			}
		}
	}
	return []driven{published}
}

func (g gpu) counterSet() string { return g.name() + "-counter-set" }

// draws returns the part of its GPU that a device takes: memory slices from begin on, memory and processors.
func (g gpu) draws(begin, slices int, memory, processors string) []resourcev1.DeviceCounterConsumption {
	return []resourcev1.DeviceCounterConsumption{{
		CounterSet: g.counterSet(), Counters: counters(begin, slices, memory, processors),
	}}
}

func counters(begin, slices int, memory, processors string) map[string]resourcev1.Counter {
	set := map[string]resourcev1.Counter{"memory": counter(memory), "multiprocessors": counter(processors)}
	for i := range slices {
		set[fmt.Sprintf("memory-slice-%d", begin+i)] = counter("1")
	}
	return set
}

// partition is a part of the GPU, with the memory slices from begin on.
func (g gpu) partition(machine Machine, p profile, begin int) resourcev1.Device {
	said := g.described()
	said["type"], said["profile"], said["parentUUID"] = text("mig"), text(p.name), text(g.uuid(machine))
	return resourcev1.Device{
		Name:       fmt.Sprintf("%s-mig-%s-%d-%d", g.name(), strings.ReplaceAll(p.name, ".", ""), p.id, begin),
		Attributes: said,
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{
			"memory": capacity(p.memory), "multiprocessors": capacity(p.multiprocessors),
		},
		ConsumesCounters: g.draws(begin, p.slices, p.memory, p.multiprocessors),
	}
}
