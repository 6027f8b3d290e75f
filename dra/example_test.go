package dra_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/dra"
)

// A node publishes four GPUs, and a claim has taken one of them: one more pod with two GPUs fits.
func ExampleFitter_Fit() {
	const driver = "gpu.example.com"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "n1-gpus"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver: driver, NodeName: &node.Name, Pool: resourcev1.ResourcePool{Name: "n1", ResourceSliceCount: 1},
		},
	}
	for i := range 4 {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu", i)})
	}
	class := &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
		Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: `device.driver == "` + driver + `"`}},
		}},
	}
	gpus := func(name string, count int64) *resourcev1.ResourceClaim {
		exactly := &resourcev1.ExactDeviceRequest{
			DeviceClassName: "gpu", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: count,
		}
		return &resourcev1.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
				Requests: []resourcev1.DeviceRequest{{Name: "gpus", Exactly: exactly}},
			}},
		}
	}
	taken := gpus("taken", 1)
	taken.UID = "1"
	taken.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{
			{Request: "gpus", Driver: driver, Pool: "n1", Device: "gpu0"},
		},
	}}
	fleet := dra.Fleet{
		Inventory: dra.NewInventory([]*resourcev1.ResourceSlice{slice}, node),
		Ledger:    dra.NewLedger(taken),
	}

	fitter := dra.NewFitter(dra.DefaultFeatures(), dra.DefaultSteps)
	gpu := func(string) *resourcev1.DeviceClass { return class }
	fit, err := fitter.Fit(context.Background(), fleet, "n1", fitter.Demand(gpu, gpus("wanted", 2)))
	fmt.Println(fit.Pods, err)
	fmt.Println("the next:", fit.Rule)
	// Output:
	// 1 <nil>
	// the next: request gpus needs 2 devices of class gpu: 4 devices, 1 free
}
