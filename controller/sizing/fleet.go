package sizing

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// UnkeptLabels begins the node labels that a Node does not have: those of Node Feature Discovery, the bulk of a node's.
// Pods that select by them cannot be evaluated.
const UnkeptLabels = "feature.node.kubernetes.io/"

// Fleet holds the GPUs of a cluster. It is a value that never changes.
type Fleet struct {
	// Nodes are the nodes with GPUs, by name.
	Nodes []Node
	// Known is set once all nodes were read. The Fleet of a controller that has just started is not known.
	Known bool
}

// Node is a node with GPUs.
type Node struct {
	Name string
	// Resource is the GPUs' extended resource, Devices how many of them are allocatable.
	Resource corev1.ResourceName
	Devices  int64
	// Memory is that of each of them, in bytes; 0 if the node does not report it, or if pods share GPUs.
	Memory int64
	// Product is the name of the GPUs. PinKey is the node label that identifies the product, PinValue its value; empty
	// if there is none.
	Product          string
	PinKey, PinValue string
	// Domain is the NVLink domain that the node shares with others; empty for one of its own.
	Domain string
	// Labels, Taints and Unschedulable decide which pods may be placed there.
	Labels        map[string]string
	Taints        []corev1.Taint
	Unschedulable bool
}

// kind is a group of nodes that are alike for a choice.
type kind struct {
	resource         corev1.ResourceName
	product          string
	pinKey, pinValue string
	memory, devices  int64
}

// offer counts the nodes of a kind, and those of them in the largest NVLink domain.
type offer struct {
	kind
	nodes, together int64
}

// offers groups nodes into kinds, in a fixed order.
func offers(nodes []Node) []offer {
	count, domains := map[kind]int64{}, map[kind]map[string]int64{}
	for _, node := range nodes {
		k := kind{node.Resource, node.Product, node.PinKey, node.PinValue, node.Memory, node.Devices}
		if domains[k] == nil {
			domains[k] = map[string]int64{}
		}
		count[k]++
		if node.Domain != "" {
			domains[k][node.Domain]++
		}
	}
	var out []offer
	for k, number := range count {
		together := int64(1)
		for _, members := range domains[k] {
			together = max(together, members)
		}
		out = append(out, offer{k, number, together})
	}
	slices.SortFunc(out, func(a, b offer) int {
		return cmp.Or(
			cmp.Compare(a.resource, b.resource), cmp.Compare(a.product, b.product), cmp.Compare(a.pinKey, b.pinKey),
			cmp.Compare(a.pinValue, b.pinValue), cmp.Compare(a.memory, b.memory), cmp.Compare(a.devices, b.devices),
		)
	})
	return out
}

// resources lists the names of GPUs in a fleet, sorted.
func resources(nodes []Node) []string {
	names := map[string]bool{}
	for _, node := range nodes {
		names[string(node.Resource)] = true
	}
	return slices.Sorted(maps.Keys(names))
}
