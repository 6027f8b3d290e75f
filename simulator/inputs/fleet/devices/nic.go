package devices

import (
	"fmt"
	"maps"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
)

// nic is dranet's description of a network card, or of one function of it.
type nic struct {
	// address is the PCI address, root the PCIe root above it.
	address, root  string
	numa           int64
	vendor, model  string
	rdmaDevice     string
	networkDetails attributes
}

func (n nic) device() resourcev1.Device {
	said := attributes{
		"dra.net/numaNode":   number(n.numa),
		"dra.net/pciAddress": text(n.address),
		"dra.net/pciDevice":  text(n.model),
		"dra.net/pciVendor":  text(n.vendor),
		"dra.net/rdma":       truth(true),
		"dra.net/rdmaDevice": text(n.rdmaDevice),
		pcieRoot:             text(n.root),
	}
	maps.Copy(said, n.networkDetails)
	name := "pci-" + strings.NewReplacer(":", "-", ".", "-").Replace(n.address)
	return resourcev1.Device{Name: name, Attributes: said}
}

// mellanox is a ConnectX function with a network interface.
func mellanox(index int, address, model string) nic {
	domain, rest, _ := strings.Cut(address, ":")
	bus, _, _ := strings.Cut(rest, ":")
	return nic{
		address: address, root: "pci" + domain + ":" + bus, numa: int64(index / 4),
		vendor: "Mellanox Technologies", model: model, rdmaDevice: fmt.Sprintf("mlx5_%d", index),
		networkDetails: attributes{
			"dra.net/ifName":  text(fmt.Sprintf("rdma%d", index)),
			"dra.net/mtu":     number(4220),
			"dra.net/sriov":   truth(false),
			"dra.net/state":   text("up"),
			"dra.net/type":    text("device"),
			"dra.net/virtual": truth(false),
		},
	}
}

// h100Node is a DGX or HGX H100: each GPU shares its PCIe root with a card.
func h100Node(machine Machine) []driven {
	cards := driven{driver: driverNIC}
	for i, bus := range hgxBuses() {
		cards.devices = append(cards.devices, mellanox(i, "0000:"+bus+":00.0", "MT2910 Family [ConnectX-7]").device())
	}
	return []driven{hgxGPUs(machine), cards}
}

// efaNode is AWS's p5: four adapters without a network interface below the root of each GPU.
func efaNode(machine Machine) []driven {
	const perGPU = 4
	cards := driven{driver: driverNIC}
	for i, bus := range hgxBuses() {
		for function := range perGPU {
			cards.devices = append(cards.devices, nic{
				address: fmt.Sprintf("0000:%s:1%d.0", bus, function), root: "pci0000:" + bus, numa: int64(i / 4),
				vendor: "Amazon.com, Inc.", model: "Elastic Fabric Adapter (EFA)",
				rdmaDevice: fmt.Sprintf("rdmap%ds%d", i, function),
			}.device())
		}
	}
	return []driven{hgxGPUs(machine), cards}
}
