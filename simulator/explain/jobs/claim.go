package jobs

import (
	resourcev1 "k8s.io/api/resource/v1"
)

// setDefaults sets the fields of a claim's requests that the API server sets when the claim is created: one device, by
// its count.
func setDefaults(spec *resourcev1.ResourceClaimSpec) {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if exactly := request.Exactly; exactly != nil {
			exactly.AllocationMode, exactly.Count = counted(exactly.AllocationMode, exactly.Count)
		}
		for j := range request.FirstAvailable {
			sub := &request.FirstAvailable[j]
			sub.AllocationMode, sub.Count = counted(sub.AllocationMode, sub.Count)
		}
	}
}

func counted(mode resourcev1.DeviceAllocationMode, count int64) (resourcev1.DeviceAllocationMode, int64) {
	if mode == "" {
		mode = resourcev1.DeviceAllocationModeExactCount
	}
	if mode == resourcev1.DeviceAllocationModeExactCount && count == 0 {
		count = 1
	}
	return mode, count
}
