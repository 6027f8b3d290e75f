package devices

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// The drivers.
const (
	driverGPU    = "gpu.nvidia.com"
	driverNIC    = "dra.net"
	driverDomain = "compute-domain.nvidia.com"
	driverTPU    = "tpu.google.com"
)

// The attributes that drivers share by name.
const (
	pcieRoot = "resource.kubernetes.io/pcieRoot"
	pciBusID = "resource.kubernetes.io/pciBusID"
	numaNode = "resource.kubernetes.io/numaNode"
)

type attributes = map[resourcev1.QualifiedName]resourcev1.DeviceAttribute

func text(value string) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{StringValue: &value}
}

func number(value int64) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{IntValue: &value}
}

func truth(value bool) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{BoolValue: &value}
}

func version(value string) resourcev1.DeviceAttribute {
	return resourcev1.DeviceAttribute{VersionValue: &value}
}

// capacity is an amount of a device that the models write as a constant.
func capacity(value string) resourcev1.DeviceCapacity {
	return resourcev1.DeviceCapacity{Value: resource.MustParse(value)}
}

// counter is an amount of a counter, likewise.
func counter(value string) resourcev1.Counter {
	return resourcev1.Counter{Value: resource.MustParse(value)}
}
