package devices_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/devices/devicestest"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	channelDriver = "compute-domain.nvidia.com"
	channelClass  = "compute-domain-default-channel.nvidia.com"
	domainLabel   = "resource.nvidia.com/computeDomain"
)

// channel publishes the one channel of a node.
func channel(node *corev1.Node) runtime.Object {
	kind, id := "channel", int64(0)
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: node.Name + "-channel", ResourceVersion: "1", UID: types.UID("channel-" + node.Name),
		},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: channelDriver, NodeName: &node.Name,
			Pool: resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{{
				Name: "channel-0",
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"type": {StringValue: &kind}, "id": {IntValue: &id},
				},
			}},
		},
	}
}

// linked are the nodes with their channels, and the class of these.
func linked(nodes []*corev1.Node) []runtime.Object {
	objects := append(schedulertest.Objects(nodes...), &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: channelClass, ResourceVersion: "1"},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
			Expression: fmt.Sprintf(`device.driver == %q && device.attributes[%[1]q].type == "channel" && `+
				`device.attributes[%[1]q].id == 0`, channelDriver),
		}}}},
	})
	for _, n := range nodes {
		objects = append(objects, channel(n))
	}
	return objects
}

// configured returns a claim's parameters for the driver of its channel.
func configured(parameters string) resourcev1.DeviceClaimConfiguration {
	return resourcev1.DeviceClaimConfiguration{DeviceConfiguration: resourcev1.DeviceConfiguration{
		Opaque: &resourcev1.OpaqueDeviceConfiguration{
			Driver: channelDriver, Parameters: runtime.RawExtension{Raw: []byte(parameters)},
		},
	}}
}

// channelsOf gives each of the pods a claim for a channel of a ComputeDomain, and returns the claims.
func channelsOf(members []*corev1.Pod, domain string) []runtime.Object {
	var claims []runtime.Object
	for _, pod := range members {
		claims = append(claims, schedulertest.PodClaim(pod, "channel", resourcev1.ResourceClaimSpec{
			Devices: resourcev1.DeviceClaim{
				Requests: []resourcev1.DeviceRequest{{Name: "channel", Exactly: &resourcev1.ExactDeviceRequest{
					DeviceClassName: channelClass, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
				}}},
				Config: []resourcev1.DeviceClaimConfiguration{configured(fmt.Sprintf(
					`{"apiVersion":"resource.nvidia.com/v1beta1","kind":"ComputeDomainChannelConfig","domainID":%q,"news":1}`,
					domain,
				))},
			},
		}))
	}
	return claims
}

// holdsChannels lets the pods hold the channels of the nodes on which they run.
func holdsChannels(members []*corev1.Pod, claims []runtime.Object) {
	for i, pod := range members {
		schedulertest.Allocate(pod, claims[i], &resourcev1.AllocationResult{
			Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "channel", Driver: channelDriver, Pool: pod.Spec.NodeName, Device: "channel-0"},
			}},
			NodeSelector: devicestest.OneNode(pod.Spec.NodeName),
		})
	}
}

// nvlinkGang is a gang in one clique whose members have channels of the ComputeDomain of its name.
func nvlinkGang(name string, size int) (*schedulingv1beta1.PodGroup, []*corev1.Pod, []runtime.Object) {
	group, members := schedulertest.Gang(name, size, topology.LabelClique)
	return group, members, channelsOf(members, "domain-of-"+name)
}

// labels sets a label of nodes, or takes it away if the value is empty.
func labels(nodes []*corev1.Node, key, value string, names ...string) []*corev1.Node {
	for _, name := range names {
		setLabel(schedulertest.FindNode(nodes, name), key, value)
	}
	return nodes
}

func setLabel(n *corev1.Node, key, value string) {
	if n.Labels[key] = value; value == "" {
		delete(n.Labels, key)
	}
}
