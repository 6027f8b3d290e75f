package devices

import (
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/lockstep-project/lockstep/topology"
)

// gb200Tray is a compute tray of an NVL72 rack. Its GPUs hang off roots of their own, so no GPU shares one with a card:
// the two have only the NUMA node in common. Its clique is a label of the node, not an attribute.
func gb200Tray(machine Machine) []driven {
	gpus := driven{driver: driverGPU}
	for i, domain := range []string{"0008", "0009", "0018", "0019"} {
		gpus.devices = append(gpus.devices, gpu{
			index: i, product: "NVIDIA GB200", architecture: "Blackwell", addressing: "ATS", capability: "10.0.0",
			memory: "189471Mi", root: "pci" + domain + ":00", bus: domain + ":06:00.0", numa: int64(i / 2),
		}.device(machine))
	}
	cards := driven{driver: driverNIC}
	for i, domain := range []string{"0000", "0002", "0010", "0012"} {
		for function := range 2 {
			address := fmt.Sprintf("%s:03:00.%d", domain, function)
			card := mellanox(2*i+function, address, "CX8 Family [ConnectX-8]")
			card.root = "pci" + domain + ":00"
			card.located(machine)
			cards.devices = append(cards.devices, card.device())
		}
	}
	return []driven{gpus, cards, computeDomain()}
}

// located adds the attributes that dranet reads from the cloud: the machine's rack, and its NVLink fabric.
func (n nic) located(machine Machine) {
	if rack := machine.Labels["accelerator.topograph.run/domain"]; rack != "" {
		n.networkDetails["oke.dra.net/rackId"] = text(rack)
	}
	if clique := machine.Labels[topology.LabelClique]; clique != "" {
		n.networkDetails["oke.dra.net/gpuMemoryFabricId"] = text(clique)
	}
}

// computeDomain is the channel of a machine and the daemon beside it. In an embedded cluster with cliques the player of
// NVIDIA's driver publishes these itself.
func computeDomain() driven {
	published := driven{driver: driverDomain}
	for _, kind := range []string{"channel", "daemon"} {
		published.devices = append(published.devices, resourcev1.Device{
			Name: kind + "-0", Attributes: attributes{"type": text(kind), "id": number(0)},
		})
	}
	return published
}
