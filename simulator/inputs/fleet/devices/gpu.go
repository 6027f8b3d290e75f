package devices

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
)

// gpu is NVIDIA's driver's description of one.
type gpu struct {
	index int
	// product to capability are the make: the name, and the properties that follow from it.
	product, architecture, addressing, capability string
	memory                                        string
	// bus is the address below the root.
	root, bus string
	numa      int64
}

// h100 is a GPU of an HGX board, below the PCIe root of that bus.
func h100(index int, bus string) gpu {
	return gpu{
		index: index, product: "NVIDIA H100 80GB HBM3", architecture: "Hopper", addressing: "HMM", capability: "9.0.0",
		memory: "81559Mi", root: "pci0000:" + bus, bus: "0000:" + bus + ":01.0", numa: int64(index / 4),
	}
}

func (g gpu) name() string { return fmt.Sprintf("gpu-%d", g.index) }

// described are the attributes that a GPU shares with its partitions.
func (g gpu) described() attributes {
	return attributes{
		"addressingMode":        text(g.addressing),
		"architecture":          text(g.architecture),
		"brand":                 text("Nvidia"),
		"cudaComputeCapability": version(g.capability),
		"cudaDriverVersion":     version("13.0.0"),
		"driverVersion":         version("580.126.20"),
		"productName":           text(g.product),
		numaNode:                number(g.numa),
		pciBusID:                text(g.bus),
		pcieRoot:                text(g.root),
	}
}

func (g gpu) uuid(machine Machine) string { return "GPU-" + machine.UUID(g.name()) }

// device is the whole GPU.
func (g gpu) device(machine Machine) resourcev1.Device {
	said := g.described()
	said["type"], said["uuid"] = text("gpu"), text(g.uuid(machine))
	return resourcev1.Device{
		Name: g.name(), Attributes: said,
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": capacity(g.memory)},
	}
}

// hgxBuses are the buses of the eight PCIe roots of an HGX machine.
func hgxBuses() []string { return []string{"0c", "2a", "41", "58", "86", "a5", "bd", "d5"} }

// hgxGPUs are eight H100, one below each root.
func hgxGPUs(machine Machine) driven {
	gpus := driven{driver: driverGPU}
	for i, bus := range hgxBuses() {
		gpus.devices = append(gpus.devices, h100(i, bus).device(machine))
	}
	return gpus
}
