package whatiftest

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/whatif"
)

const (
	driver   = "gpu.example.com"
	pcieRoot = resourcev1.QualifiedName("resource.kubernetes.io/pcieRoot")
	// template is the name of the claim templates for pairs, but for their number.
	template = "pairs-"
)

// publish lets nodes publish pairs of a GPU and a NIC below one PCIe root each, in place of the GPUs that they have as a resource;
// the NICs of broken pairs are elsewhere. The class gpu stands for the resource.
func publish(o *whatif.Objects, d *datadriven.TestData) error {
	pairs, broken := perNode, 0
	if err := number(d, "pairs", &pairs); err != nil {
		return err
	}
	if err := number(d, "broken", &broken); err != nil {
		return err
	}
	if len(o.Devices.Classes) == 0 {
		name := string(gpu)
		o.Devices.Classes = []*resourcev1.DeviceClass{class("gpu"), class("nic")}
		o.Devices.Classes[0].Spec.ExtendedResourceName = &name
	}
	for _, node := range o.Nodes {
		if prefix := d.CmdArgs[0].Key; node.Name == prefix || strings.HasPrefix(node.Name, prefix+"-") {
			delete(node.Status.Allocatable, gpu)
			delete(node.Status.Capacity, gpu)
			o.Devices.Slices = append(o.Devices.Slices, slice(node, pairs, broken))
		}
	}
	return nil
}

func class(kind string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: kind},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: fmt.Sprintf(`device.attributes[%q].kind == %q`, driver, kind),
		}}}},
	}
}

func slice(node *corev1.Node, pairs, broken int) *resourcev1.ResourceSlice {
	out := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node.Name,
			Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
		},
	}
	for i := range pairs {
		for _, kind := range []string{"gpu", "nic"} {
			root := fmt.Sprint("pci", i)
			if kind == "nic" && i >= pairs-broken {
				root = fmt.Sprint("far", i)
			}
			out.Spec.Devices = append(out.Spec.Devices, resourcev1.Device{
				Name: fmt.Sprint(kind, "-", i),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"kind": {StringValue: &kind}, pcieRoot: {StringValue: &root},
				},
			})
		}
	}
	return out
}

// pairsTemplate is a claim template for so many pairs, each below one PCIe root.
func pairsTemplate(pairs int) *resourcev1.ResourceClaimTemplate {
	out := &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: template + strconv.Itoa(pairs)},
	}
	root := resourcev1.FullyQualifiedName(pcieRoot)
	devices := &out.Spec.Spec.Devices
	for i := range pairs {
		requests := []string{fmt.Sprint("gpu", i), fmt.Sprint("nic", i)}
		for j, kind := range []string{"gpu", "nic"} {
			devices.Requests = append(devices.Requests, resourcev1.DeviceRequest{
				Name: requests[j], Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: kind, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
				},
			})
		}
		devices.Constraints = append(devices.Constraints,
			resourcev1.DeviceConstraint{Requests: requests, MatchAttribute: &root})
	}
	return out
}

// claim lets pods claim pairs by a template; 0 pairs by one that does not exist.
func claim(o *whatif.Objects, pods []*corev1.Pod, pairs int) {
	name := template + strconv.Itoa(pairs)
	if pairs > 0 {
		o.Devices.Templates = append(o.Devices.Templates, pairsTemplate(pairs))
	}
	for _, p := range pods {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimTemplateName: &name}}
	}
}

// give lets pods that run have the first pairs of their nodes, instead of GPUs by number.
func give(o *whatif.Objects, pods []*corev1.Pod, pairs int) {
	claim(o, pods, pairs)
	for _, p := range pods {
		delete(p.Spec.Containers[0].Resources.Requests, gpu)
		c := &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace,
				Name:      p.Name + "-has",
				UID:       types.UID(p.Name + "-has"),
				OwnerReferences: []metav1.OwnerReference{
					{Kind: "Pod", Name: p.Name, UID: p.UID, Controller: new(true)},
				},
			},
			Spec: pairsTemplate(pairs).Spec.Spec,
			Status: resourcev1.ResourceClaimStatus{
				Allocation:  &resourcev1.AllocationResult{},
				ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}},
			},
		}
		for i, request := range c.Spec.Devices.Requests {
			c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
				resourcev1.DeviceRequestAllocationResult{
					Request: request.Name, Driver: driver, Pool: p.Spec.NodeName,
					Device: fmt.Sprint(request.Exactly.DeviceClassName, "-", i/2),
				})
		}
		o.Devices.Claims = append(o.Devices.Claims, c)
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "devices", ResourceClaimName: &c.Name}}
	}
}
