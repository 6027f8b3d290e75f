package devices

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OccupiedTaint is the key of the taint (NoSchedule) on devices that are in use otherwise.
const OccupiedTaint = "simulator.lockstep.dev/occupied"

// A Machine is the node whose devices are published.
type Machine struct {
	Name   string
	Labels map[string]string
	// UUID makes the identifier of one of its devices, without the prefix that drivers give it.
	UUID func(device string) string
	// Missing are the names of devices that have failed, so that their driver publishes them no longer.
	Missing []string
	// Occupied are the names of devices that have OccupiedTaint.
	Occupied []string
}

// A Model is a machine's make.
type Model struct {
	// Name is its name in a fleet, such as h100-8.
	Name string
	// About describes the machine in a few words.
	About string
	// published are the devices of each driver on one machine, in the order in which it lists them.
	published func(Machine) []driven
}

// driven are the devices of one driver on one machine.
type driven struct {
	driver   string
	counters []resourcev1.CounterSet
	devices  []resourcev1.Device
}

// Models lists the models, sorted by name.
func Models() []Model {
	return []Model{
		{Name: "gb200-tray", About: "4 GB200, 8 ConnectX-8 ports, an IMEX channel", published: gb200Tray},
		{Name: "h100-8", About: "8 H100, 8 ConnectX-7, a GPU and a NIC below each PCIe root", published: h100Node},
		{Name: "h100-mig", About: "8 H100 that are partitioned on demand (MIG)", published: migNode},
		{Name: "p5-efa", About: "8 H100, 32 EFA, a GPU and four EFA below each PCIe root", published: efaNode},
		{Name: "tpu-v5p", About: "4 TPU v5p chips", published: tpuNode},
	}
}

// Find returns the model of a name.
func Find(name string) (Model, bool) {
	all := Models()
	i := slices.IndexFunc(all, func(m Model) bool { return m.Name == name })
	if i < 0 {
		return Model{}, false
	}
	return all[i], true
}

// Names lists the names of the models, sorted.
func Names() []string {
	var names []string
	for _, model := range Models() {
		names = append(names, model.Name)
	}
	return names
}

// Drivers lists the drivers that publish the model's devices.
func (m Model) Drivers() []string {
	var drivers []string
	for _, one := range m.published(Machine{UUID: func(string) string { return "" }}) {
		drivers = append(drivers, one.driver)
	}
	return drivers
}

// Devices lists the names of the devices of one machine of the model.
func (m Model) Devices() []string {
	var names []string
	for _, one := range m.published(Machine{UUID: func(string) string { return "" }}) {
		for _, device := range one.devices {
			names = append(names, device.Name)
		}
	}
	return names
}

// The API server's bounds on a slice: fewer devices if any of them has a taint or draws on counters.
const (
	maxDevices         = resourcev1.ResourceSliceMaxDevices
	maxAdvancedDevices = 64
)

// Slices returns the slices that the drivers of one machine publish: a pool for each driver, named like the node, in
// its first generation. Counters have a slice of their own, as Kubernetes requires since 1.35.
func (m Model) Slices(machine Machine) []resourcev1.ResourceSlice {
	var all []resourcev1.ResourceSlice
	for _, one := range m.published(machine) {
		one.devices = slices.DeleteFunc(one.devices, func(d resourcev1.Device) bool {
			return slices.Contains(machine.Missing, d.Name)
		})
		for i := range one.devices {
			if slices.Contains(machine.Occupied, one.devices[i].Name) {
				taint := resourcev1.DeviceTaint{Key: OccupiedTaint, Effect: resourcev1.DeviceTaintEffectNoSchedule}
				one.devices[i].Taints = append(one.devices[i].Taints, taint)
			}
		}
		all = append(all, one.pool(machine.Name)...)
	}
	return all
}

// pool spreads the devices of one driver over as many slices as they need.
func (d driven) pool(node string) []resourcev1.ResourceSlice {
	var pool []resourcev1.ResourceSlice
	if len(d.counters) > 0 {
		pool = append(pool, resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{SharedCounters: d.counters}})
	}
	most := maxDevices
	if slices.ContainsFunc(d.devices, func(one resourcev1.Device) bool {
		return len(one.Taints) > 0 || len(one.ConsumesCounters) > 0
	}) {
		most = maxAdvancedDevices
	}
	for some := range slices.Chunk(d.devices, most) {
		pool = append(pool, resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{Devices: some}})
	}
	for i := range pool {
		pool[i].TypeMeta = metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "ResourceSlice"}
		pool[i].Name = fmt.Sprintf("%s-%s-%d", node, d.driver, i)
		pool[i].Spec.Driver, pool[i].Spec.NodeName = d.driver, new(node)
		pool[i].Spec.Pool = resourcev1.ResourcePool{Name: node, Generation: 1, ResourceSliceCount: int64(len(pool))}
	}
	return pool
}
