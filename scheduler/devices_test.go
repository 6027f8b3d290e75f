package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

const (
	driver  = "gpu.example.com"
	pciRoot = resourcev1.QualifiedName("resource.kubernetes.io/pcieRoot")
)

// publishes is a node's slice of pairs of a GPU and a NIC at one PCIe root each; the last broken pairs have their NICs elsewhere.
func publishes(node *corev1.Node, pairs, broken int) *resourcev1.ResourceSlice {
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, ResourceVersion: "1", UID: types.UID("slice-" + node.Name)},
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
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
				Name: fmt.Sprint(kind, "-", i),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"kind": {StringValue: &kind}, pciRoot: {StringValue: &root},
				},
			})
		}
	}
	return slice
}

// classes are the device classes gpu and nic.
func classes() []runtime.Object {
	var out []runtime.Object
	for _, kind := range []string{"gpu", "nic"} {
		out = append(out, &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: kind, ResourceVersion: "1"},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: fmt.Sprintf(`device.attributes[%q].kind == %q`, driver, kind),
			}}}},
		})
	}
	return out
}

// claiming is a gang of which each member claims so many pairs, aligned by PCIe root, and its claims as their controller made them.
func claiming(
	name string,
	size, pairs int,
	class string,
) (*schedulingv1beta1.PodGroup, []*corev1.Pod, []runtime.Object) {
	group, members := gang(name, size, "clique")
	var claims []runtime.Object
	for _, pod := range members {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
			Name:            pod.Name + "-devices",
			Namespace:       namespace,
			ResourceVersion: "1",
			UID:             types.UID(pod.Name + "-devices"),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID, Controller: new(true),
			}},
		}}
		for i := range pairs {
			g, n := fmt.Sprint("gpu", i), fmt.Sprint("nic", i)
			for request, of := range map[string]string{g: class, n: "nic"} {
				claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourcev1.DeviceRequest{
					Name: request, Exactly: &resourcev1.ExactDeviceRequest{
						DeviceClassName: of, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
					},
				})
			}
			root := resourcev1.FullyQualifiedName(pciRoot)
			claim.Spec.Devices.Constraints = append(claim.Spec.Devices.Constraints,
				resourcev1.DeviceConstraint{Requests: []string{g, n}, MatchAttribute: &root})
		}
		slices.SortFunc(claim.Spec.Devices.Requests, func(a, b resourcev1.DeviceRequest) int {
			return strings.Compare(a.Name, b.Name)
		})
		template := "devices"
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "devices", ResourceClaimTemplateName: &template}}
		pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{
			{Name: "devices", ResourceClaimName: &claim.Name},
		}
		pod.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "devices"}}
		delete(pod.Spec.Containers[0].Resources.Requests, gpu)
		pod.Spec.Containers[0].Resources.Limits = pod.Spec.Containers[0].Resources.Requests
		claims = append(claims, claim)
	}
	return group, members, claims
}

// Three cliques of four. In the first a node has one pair whose NIC is elsewhere, in the second one publishes nothing: a gang that
// needs all pairs of four nodes goes to the third, at once.
func TestAGangGoesWhereItsDevicesAre(t *testing.T) {
	nodes := cliques(3, 4)
	objects := slices.Concat(as(nodes...), classes())
	for _, node := range nodes {
		switch node.Name {
		case "c0-n2":
			objects = append(objects, publishes(node, 4, 1))
		case "c1-n1":
		default:
			objects = append(objects, publishes(node, 4, 0))
		}
	}
	group, members, claims := claiming("train", 4, 4, "gpu")
	refusals := counted(t, "lockstep_scheduler_pin_refusals_total", "")
	c := listed(t, slices.Concat(objects, claims)...)
	c.add(t, group, members)
	if got := c.waitBound(t, members); !slices.Equal(got, inClique(2, 4)) {
		t.Errorf("the gang is on %v", got)
	}
	if n := counted(t, "lockstep_scheduler_pin_refusals_total", "") - refusals; n != 0 {
		t.Errorf("%v planned nodes were refused", n)
	}
}

// Claims that cannot be asked for keep their gang waiting with the reason, and nobody else.
func TestClaimsThatCannotBeAskedForAreExplained(t *testing.T) {
	nodes := cliques(1, 4)
	objects := slices.Concat(as(nodes...), classes())
	for _, node := range nodes {
		objects = append(objects, publishes(node, 2, 0))
	}
	wrong, lost, itsClaims := claiming("wrong", 2, 1, "gpus")
	other, fine, claims := claiming("fine", 2, 2, "gpu")
	c := listed(t, slices.Concat(objects, itsClaims, claims)...)
	c.add(t, wrong, lost)
	if why := c.waitRejected(t, "wrong"); !strings.Contains(why, "gpus") {
		t.Errorf("it waits for: %s", why)
	}
	c.add(t, other, fine)
	c.waitBound(t, fine)
}
