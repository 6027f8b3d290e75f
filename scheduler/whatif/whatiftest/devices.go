package whatiftest

import (
	"strconv"
	"strings"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
	"github.com/lockstep-project/lockstep/scheduler/whatif"
)

// template is the name of the claim templates for pairs, but for their number.
const template = "pairs-"

// publish lets nodes publish pairs of a GPU and a NIC below one PCIe root each, in place of the GPUs that they have as
// a resource; the NICs of broken pairs are elsewhere. The class gpu stands for the resource.
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
		o.Devices.Classes = []*resourcev1.DeviceClass{devicestest.Class("gpu"), devicestest.Class("nic")}
		o.Devices.Classes[0].Spec.ExtendedResourceName = &name
	}
	for _, node := range o.Nodes {
		if prefix := d.CmdArgs[0].Key; node.Name == prefix || strings.HasPrefix(node.Name, prefix+"-") {
			delete(node.Status.Allocatable, gpu)
			delete(node.Status.Capacity, gpu)
			o.Devices.Slices = append(o.Devices.Slices, devicestest.Slice(node, pairs, broken))
		}
	}
	return nil
}

// pairsTemplate is a claim template for so many pairs, each below one PCIe root.
func pairsTemplate(pairs int) *resourcev1.ResourceClaimTemplate {
	return &resourcev1.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: template + strconv.Itoa(pairs)},
		Spec:       resourcev1.ResourceClaimTemplateSpec{Spec: devicestest.Pairs(pairs, "gpu")},
	}
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
			Spec: devicestest.Pairs(pairs, "gpu"),
			Status: resourcev1.ResourceClaimStatus{
				Allocation:  devicestest.Allocation(p.Spec.NodeName, pairs),
				ReservedFor: []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: p.Name, UID: p.UID}},
			},
		}
		o.Devices.Claims = append(o.Devices.Claims, c)
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "devices", ResourceClaimName: &c.Name}}
	}
}
