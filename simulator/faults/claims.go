package faults

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/simulator/faults/fakecluster"
	"github.com/lockstep-project/lockstep/simulator/live/cluster/nvlink"
)

// In a scene with claims nodes offer no GPUs by name: their driver publishes devices, and each rank has a ResourceClaim
// of its own.

const (
	driver = "gpu.example.com"
	// claimed is a pod's name of its claim.
	claimed = "gpus"
)

// sizes returns the numbers of GPUs that a rank may claim.
func sizes() []int { return []int{1, 2, 4} }

// templateOf is the name of the ResourceClaimTemplate of so many GPUs.
func templateOf(gpus int) string { return fmt.Sprintf("gpus-%d", gpus) }

// createClasses creates the objects to which claims refer.
func (w *world) createClasses() {
	w.create(&resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: driver},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + driver + `"`},
		}}},
	})
	for _, n := range sizes() {
		w.create(&resourcev1.ResourceClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: templateOf(n)},
			Spec: resourcev1.ResourceClaimTemplateSpec{Spec: resourcev1.ResourceClaimSpec{
				Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
					Name: "gpu",
					Exactly: &resourcev1.ExactDeviceRequest{
						DeviceClassName: driver,
						AllocationMode:  resourcev1.DeviceAllocationModeExactCount,
						Count:           int64(n),
					},
				}}},
			}},
		})
	}
}

// createChannelClass creates the device classes of NVIDIA's driver.
func (w *world) createChannelClass() {
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(nvlink.Manifests), len(nvlink.Manifests))
	for {
		var class resourcev1.DeviceClass
		err := documents.Decode(&class)
		if errors.Is(err, io.EOF) {
			return
		}
		w.must(err)
		if class.Kind == "DeviceClass" {
			w.create(&class)
		}
	}
}

// addNode adds a machine, and its driver's ResourceSlices.
func (w *world) addNode(at int) {
	node := w.scene.nodeFor(at)
	w.stage.Add(node)
	if !w.scene.Claims {
		return
	}
	made, err := w.server.Get("Node", types.NamespacedName{Name: node.Name})
	w.must(err)
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: node.Name + "-",
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: made.GetUID()},
			},
		},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node.Name, Pool: resourcev1.ResourcePool{Name: node.Name, ResourceSliceCount: 1},
		},
	}
	for i := range w.scene.GPUs {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprintf("gpu-%d", i)})
	}
	w.create(slice)
}

// claim has a pod claim its GPUs instead of asking for them by name.
func claim(pod *corev1.PodSpec, gpus int) {
	pod.ResourceClaims = []corev1.PodResourceClaim{{Name: claimed, ResourceClaimTemplateName: new(templateOf(gpus))}}
	pod.Containers[0].Resources = corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: claimed}}}
}

// gpusOf returns the number of GPUs that a pod has or requests.
func gpusOf(pod *corev1.Pod) int {
	n := 0
	for _, c := range pod.Spec.Containers {
		n += int(c.Resources.Requests.Name(gpu, "").Value())
	}
	for _, of := range pod.Spec.ResourceClaims {
		if of.Name == claimed {
			n += sizes()[slices.IndexFunc(sizes(), func(n int) bool { return templateOf(n) == *of.ResourceClaimTemplateName })]
		}
	}
	return n
}

// claimsOf returns the number of devices that a pod claims: its GPUs, and its channel.
func claimsOf(pod *corev1.Pod) int {
	if fakecluster.Connects(pod) {
		return gpusOf(pod) + 1
	}
	return gpusOf(pod)
}

// deviceless is the time for which a pod with a node may have no devices: until the controller of claims has seen that
// its scheduler gave it none.
const deviceless = 10 * time.Second

// devices checks the claims of pods that have nodes: each has its devices there, and no two the same.
func (v *invariants) devices() {
	holder := make(map[string]string)
	for _, o := range v.world.server.List("Pod", "") {
		pod, ok := o.(*corev1.Pod)
		if !ok || pod.Spec.NodeName == "" || hasEnded(pod) || len(pod.Spec.ResourceClaims) == 0 {
			continue
		}
		given := v.world.devicesOf(pod)
		if v.is(len(given) != claimsOf(pod), "devices/"+string(pod.UID), deviceless) {
			v.breaks(
				Once,
				pod.Name,
				"it has %d devices on %s, and claims %d",
				len(given),
				pod.Spec.NodeName,
				claimsOf(pod),
			)
		}
		v.connected(pod)
		for _, device := range given {
			if other := holder[device]; other != "" {
				v.breaks(Once, device, "%s and %s have it", other, pod.Name)
			}
			holder[device] = pod.Name
		}
	}
}

// elsewhere is the time for which a pod with a channel may be on a node that is in another ComputeDomain: its kubelet
// does not start it until the node has left that, and a scheduler knows better than to bind it there.
const elsewhere = 3 * time.Second

// connected checks a pod with a channel: its node is in its ComputeDomain, or about to be.
func (v *invariants) connected(pod *corev1.Pod) {
	if !fakecluster.Connects(pod) {
		return
	}
	name := types.NamespacedName{Namespace: pod.Namespace, Name: jobOfPod(pod)}
	domain, err := v.world.server.Get("ComputeDomain", name)
	node, gone := v.world.server.Get("Node", types.NamespacedName{Name: pod.Spec.NodeName})
	if err != nil || gone != nil {
		return
	}
	in := node.GetLabels()[nvlink.DomainLabel]
	if v.is(in != "" && in != string(domain.GetUID()), "domain/"+string(pod.UID), elsewhere) {
		v.breaks(Once, pod.Name, "it is bound to %s, which is in ComputeDomain %s, not in its own", node.GetName(), in)
	}
}

// devicesOf are the devices on a pod's node that its claims have for it.
func (w *world) devicesOf(pod *corev1.Pod) []string {
	var out []string
	for _, of := range pod.Status.ResourceClaimStatuses {
		found, err := w.server.Get(
			"ResourceClaim",
			client.ObjectKey{Namespace: pod.Namespace, Name: *of.ResourceClaimName},
		)
		c, ok := found.(*resourcev1.ResourceClaim)
		if err != nil || !ok || c.Status.Allocation == nil || !slices.ContainsFunc(
			c.Status.ReservedFor,
			func(by resourcev1.ResourceClaimConsumerReference) bool { return by.UID == pod.UID },
		) {
			continue
		}
		for _, d := range c.Status.Allocation.Devices.Results {
			if d.Pool == pod.Spec.NodeName {
				out = append(out, d.Driver+"/"+d.Pool+"/"+d.Device)
			}
		}
	}
	return out
}
