package devices

import (
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// installed is a DeviceClass that a driver installs. It selects devices of the driver for which the condition holds.
type installed struct {
	name, driver, condition string
	// extended is the name of the resource as which pods may ask for its devices too; usually none.
	extended string
}

// GPUResource is the name of the resource as which pods may ask for NVIDIA's whole GPUs.
const GPUResource = "nvidia.com/gpu"

// IsGPU reports whether a driver's device is a whole GPU of NVIDIA's, which its class gives out as GPUResource too.
func IsGPU(driver string, device resourcev1.Device) bool {
	kind := device.Attributes["type"].StringValue
	return driver == driverGPU && kind != nil && *kind == "gpu"
}

// IsAccelerator reports whether a driver's device is a machine's whole accelerator, and no part of one.
func IsAccelerator(driver string, device resourcev1.Device) bool {
	return driver == driverTPU || IsGPU(driver, device)
}

// IsPart reports whether a driver's device is a part of an accelerator: an instance of a GPU that is cut into several.
func IsPart(driver string, device resourcev1.Device) bool {
	return driver == driverGPU && !IsGPU(driver, device)
}

// ServesAccelerators reports whether the DeviceClass of that name, as the drivers that we know install it, gives out
// whole accelerators.
func ServesAccelerators(class string) bool { return class == classGPU || class == classTPU }

// The classes of whole accelerators.
const (
	classGPU = "gpu.nvidia.com"
	classTPU = "tpu.google.com"
)

// Classes are the DeviceClasses that the drivers of those names install, sorted by name. Pods may ask for NVIDIA's
// whole GPUs as GPUResource too.
func Classes(drivers []string) []resourcev1.DeviceClass {
	var classes []resourcev1.DeviceClass
	for _, one := range []installed{
		{
			name: "compute-domain-daemon.nvidia.com", driver: driverDomain,
			condition: "device.attributes['compute-domain.nvidia.com'].type == 'daemon'",
		},
		{
			name: "compute-domain-default-channel.nvidia.com", driver: driverDomain,
			condition: "device.attributes['compute-domain.nvidia.com'].type == 'channel' && " +
				"device.attributes['compute-domain.nvidia.com'].id == 0",
		},
		{name: "dranet.net", driver: driverNIC},
		{
			name: classGPU, driver: driverGPU, extended: GPUResource,
			condition: "device.attributes['gpu.nvidia.com'].type == 'gpu'",
		},
		{
			name: "mig.nvidia.com", driver: driverGPU,
			condition: "device.attributes['gpu.nvidia.com'].type == 'mig'",
		},
		{name: classTPU, driver: driverTPU},
	} {
		if slices.Contains(drivers, one.driver) {
			classes = append(classes, one.class())
		}
	}
	return classes
}

func (i installed) class() resourcev1.DeviceClass {
	expression := fmt.Sprintf("device.driver == '%s'", i.driver)
	if i.condition != "" {
		expression += " && " + i.condition
	}
	class := resourcev1.DeviceClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: resourcev1.SchemeGroupVersion.String(), Kind: "DeviceClass"},
		ObjectMeta: metav1.ObjectMeta{Name: i.name},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{
			CEL: &resourcev1.CELDeviceSelector{Expression: expression},
		}}},
	}
	if i.extended != "" {
		class.Spec.ExtendedResourceName = &i.extended
	}
	return class
}
