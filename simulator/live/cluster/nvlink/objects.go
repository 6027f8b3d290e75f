package nvlink

import (
	_ "embed" // for Manifests
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-project/lockstep/topology"
)

// Manifests are the kinds, the device classes and the role of the driver, as YAML. The role is User's.
//
//go:embed objects.yaml
var Manifests []byte

const (
	// User is the name of the account under which the driver works.
	User = "lockstep-up-nvlink"
	// PreparedAnnotation says on a pod with claims, by the value Prepared, that it may start.
	PreparedAnnotation = "simulator.lockstep.dev/claims"
	// Prepared is its value.
	Prepared = "prepared"
	// DomainLabel is the label with which a node is one of a domain's, whose UID is the value.
	DomainLabel = "resource.nvidia.com/computeDomain"

	driverName   = "compute-domain.nvidia.com"
	channelClass = "compute-domain-default-channel.nvidia.com"

	// Finalizer is that of a ComputeDomain until its template and the labels of its nodes are deleted.
	Finalizer = "resource.nvidia.com/computeDomain"
)

// Resource is that of ComputeDomains.
func Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "resource.nvidia.com", Version: "v1beta1", Resource: "computedomains"}
}

// InClique reports whether a node is in an NVLink clique.
func InClique(node *corev1.Node) bool { return node.Labels[topology.LabelClique] != "" }

// Publishes reports whether the player publishes the devices of the driver of that name.
func Publishes(driver string) bool { return driver == driverName }

// channelConfig is the driver's configuration in a claim for a channel.
type channelConfig struct {
	APIVersion     string `json:"apiVersion"`
	Kind           string `json:"kind"`
	DomainID       string `json:"domainID"`
	AllocationMode string `json:"allocationMode,omitempty"`
}

// Template is the claim template of a domain's channels.
func Template(domain Domain) (*resourcev1.ResourceClaimTemplate, error) {
	config, err := json.Marshal(channelConfig{
		APIVersion: Resource().GroupVersion().String(), Kind: "ComputeDomainChannelConfig",
		DomainID: string(domain.UID), AllocationMode: "Single",
	})
	if err != nil {
		return nil, fmt.Errorf("printing the configuration of a channel: %w", err)
	}
	const request = "channel"
	made := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{
		Namespace: domain.Key.Namespace, Name: domain.Template,
		Labels: map[string]string{DomainLabel: string(domain.UID)},
	}}
	made.Spec.Spec.Devices = resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{
			Name: request,
			Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: channelClass, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
			},
		}},
		Config: []resourcev1.DeviceClaimConfiguration{{
			Requests: []string{request},
			DeviceConfiguration: resourcev1.DeviceConfiguration{Opaque: &resourcev1.OpaqueDeviceConfiguration{
				Driver: driverName, Parameters: runtime.RawExtension{Raw: config},
			}},
		}},
	}
	return made, nil
}

// Slice publishes the channel of a node, and the daemon beside it.
func Slice(node *corev1.Node) *resourcev1.ResourceSlice {
	device := func(kind string) resourcev1.Device {
		return resourcev1.Device{
			Name: kind + "-0",
			Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"type": {StringValue: &kind}, "id": {IntValue: new(int64(0))},
			},
		}
	}
	return &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name:            SliceName(node.Name),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}},
		},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driverName, NodeName: &node.Name,
			Pool:    resourcev1.ResourcePool{Name: node.Name, Generation: 1, ResourceSliceCount: 1},
			Devices: []resourcev1.Device{device("channel"), device("daemon")},
		},
	}
}

// SliceName is the name of the slice of a node.
func SliceName(node string) string { return node + "-" + driverName }
