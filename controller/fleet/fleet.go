// Package fleet reads the GPUs of nodes, and holds those of a cluster as a value.
package fleet

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/lockstep-project/lockstep/controller/sizing"
	"github.com/lockstep-project/lockstep/topology"
)

// The node labels that describe GPUs: those of NVIDIA's GPU feature discovery (memory in MiB; replicas is above 1 where
// pods share a GPU), of AMD's node labeller, and of GKE.
const (
	labelMemory      = "nvidia.com/gpu.memory"
	labelProduct     = "nvidia.com/gpu.product"
	labelReplicas    = "nvidia.com/gpu.replicas"
	labelAMDMemory   = "amd.com/gpu.vram"
	labelAMDProduct  = "amd.com/gpu.product-name"
	labelAccelerator = "cloud.google.com/gke-accelerator"
)

// Labels returns the labels of a node with GPUs that the cache retains; nil for other nodes.
func Labels(node *corev1.Node) map[string]string {
	if gpu(node.Status.Allocatable) == "" {
		return nil
	}
	kept := maps.Clone(node.Labels)
	maps.DeleteFunc(kept, func(key, _ string) bool { return strings.HasPrefix(key, sizing.UnkeptLabels) })
	return kept
}

// Spec returns the fields that decide whether pods may be on a node with GPUs: its taints and unschedulable; empty for
// other nodes.
func Spec(node *corev1.Node) corev1.NodeSpec {
	if gpu(node.Status.Allocatable) == "" {
		return corev1.NodeSpec{}
	}
	return corev1.NodeSpec{Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable}
}

// GPUs returns the allocatable GPUs of a node.
func GPUs(node *corev1.Node) corev1.ResourceList {
	name := gpu(node.Status.Allocatable)
	if name == "" {
		return nil
	}
	return corev1.ResourceList{name: node.Status.Allocatable[name]}
}

// gpu returns the first extended resource, by name, with "gpu" in its name and a count above 0; "" for none. Plans
// count GPUs by the same rule.
func gpu(list corev1.ResourceList) corev1.ResourceName {
	for _, name := range slices.SortedFunc(maps.Keys(list), cmp.Compare[corev1.ResourceName]) {
		count := list[name]
		if strings.Contains(string(name), "/") && strings.Contains(strings.ToLower(string(name)), "gpu") &&
			count.Value() > 0 {
			return name
		}
	}
	return ""
}

// Of returns a node's GPUs, and false for a node without any.
func Of(node *corev1.Node) (sizing.Node, bool) {
	name := gpu(node.Status.Allocatable)
	if name == "" {
		return sizing.Node{}, false
	}
	count := node.Status.Allocatable[name]
	out := sizing.Node{
		Name: node.Name, Resource: name, Devices: count.Value(), Domain: node.Labels[topology.LabelClique],
		Labels: node.Labels, Taints: node.Spec.Taints, Unschedulable: node.Spec.Unschedulable,
	}
	memory, from := memoryOf(node.Labels)
	if replicas, err := strconv.Atoi(node.Labels[labelReplicas]); err != nil || replicas <= 1 {
		out.Memory = memory
	}
	for _, key := range []string{labelProduct, labelAMDProduct, labelAccelerator} {
		if value := node.Labels[key]; value != "" {
			out.Product, out.PinKey, out.PinValue = value, key, value
			return out, true
		}
	}
	if from != "" {
		out.PinKey, out.PinValue = from, node.Labels[from]
	}
	return out, true
}

// Value returns the fleet of the given nodes, which must be all of the cluster.
func Value(nodes []*corev1.Node) sizing.Fleet {
	out := sizing.Fleet{Known: true}
	for _, node := range nodes {
		if offered, has := Of(node); has {
			out.Nodes = append(out.Nodes, offered)
		}
	}
	slices.SortFunc(out.Nodes, func(a, b sizing.Node) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// memoryOf returns the memory of each GPU in bytes, and its label; 0 if there is none. Feature discovery's measurement
// precedes a name.
func memoryOf(labels map[string]string) (bytes int64, from string) {
	const mib, gib = 1 << 20, 1 << 30
	if size, err := strconv.ParseInt(labels[labelMemory], 10, 32); err == nil && size > 0 {
		return size * mib, labelMemory
	}
	if size, err := resource.ParseQuantity(
		strings.TrimSuffix(labels[labelAMDMemory], "B"),
	); err == nil &&
		size.Sign() > 0 {
		return size.Value(), labelAMDMemory
	}
	for _, key := range []string{labelProduct, labelAccelerator} {
		if size := named(labels[key]); size > 0 {
			return size * gib, key
		}
	}
	return 0, ""
}

// named returns the memory that a product's name has in it, such as 80 for NVIDIA-H100-80GB-HBM3; 0 for none.
func named(product string) int64 {
	for word := range strings.SplitSeq(strings.ToUpper(product), "-") {
		if digits, ok := strings.CutSuffix(word, "GB"); ok {
			if size, err := strconv.ParseInt(digits, 10, 32); err == nil && size > 0 {
				return size
			}
		}
	}
	return 0
}
