// Package devicestest makes the resource.k8s.io objects of nodes with pairs of a GPU and a NIC, for tests and what-if
// scripts. It depends on Kubernetes' API types only.
package devicestest

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// Driver is the driver of the devices.
	Driver = "gpu.example.com"

	pcieRoot = resourcev1.QualifiedName("resource.kubernetes.io/pcieRoot")
)

// Class returns the DeviceClass of the devices of a kind, gpu or nic.
func Class(kind string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: kind, ResourceVersion: "1"},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: fmt.Sprintf(`device.attributes[%q].kind == %q`, Driver, kind),
		}}}},
	}
}

// Slice returns the ResourceSlice of a node with pairs of a GPU and a NIC. Each pair has a PCIe root of its own; the
// NICs of the last broken pairs are below another root.
func Slice(node *corev1.Node, pairs, broken int) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, ResourceVersion: "1", UID: types.UID("slice-" + node.Name)},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: Driver, NodeName: &node.Name,
			Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i := range pairs {
		for _, kind := range []string{"gpu", "nic"} {
			root := fmt.Sprint("pci", i)
			if kind == "nic" && i >= pairs-broken {
				root = fmt.Sprint("far", i)
			}
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
				Name: fmt.Sprint(kind, "-", i),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"kind": {StringValue: &kind}, pcieRoot: {StringValue: &root},
				},
			})
		}
	}
	return slice
}

// Pairs returns the specification of a claim for pairs, each below one PCIe root. The GPUs are of the class.
func Pairs(pairs int, class string) resourcev1.ResourceClaimSpec {
	var spec resourcev1.ResourceClaimSpec
	root := resourcev1.FullyQualifiedName(pcieRoot)
	for _, of := range []struct{ request, class string }{{"gpu", class}, {"nic", "nic"}} {
		for i := range pairs {
			spec.Devices.Requests = append(spec.Devices.Requests, resourcev1.DeviceRequest{
				Name: fmt.Sprint(of.request, i), Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: of.class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
				},
			})
		}
	}
	for i := range pairs {
		spec.Devices.Constraints = append(spec.Devices.Constraints, resourcev1.DeviceConstraint{
			Requests: []string{fmt.Sprint("gpu", i), fmt.Sprint("nic", i)}, MatchAttribute: &root,
		})
	}
	return spec
}

// Allocation returns the allocation of the first pairs of a node, for a claim of Pairs.
func Allocation(node string, pairs int) *resourcev1.AllocationResult {
	out := &resourcev1.AllocationResult{NodeSelector: OneNode(node)}
	for _, kind := range []string{"gpu", "nic"} {
		for i := range pairs {
			out.Devices.Results = append(out.Devices.Results, resourcev1.DeviceRequestAllocationResult{
				Request: fmt.Sprint(kind, i), Driver: Driver, Pool: node, Device: fmt.Sprint(kind, "-", i),
			})
		}
	}
	return out
}

// OneNode selects a node by its name.
func OneNode(name string) *corev1.NodeSelector {
	return &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
		MatchFields: []corev1.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}},
		},
	}}}
}
