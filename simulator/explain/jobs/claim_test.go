package jobs_test

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/lockstep-project/lockstep/simulator/explain/jobs"
)

// A claim template of a file is judged as the API server would store it: without a count it requests one device.
func TestSubmit_SetsTheDefaultsOfClaims(t *testing.T) {
	const file = `apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec: {metadata: {}, spec: {devices: {requests: [
  {name: one, exactly: {deviceClassName: gpu.nvidia.com}},
  {name: two, exactly: {deviceClassName: gpu.nvidia.com, count: 2}},
  {name: all, exactly: {deviceClassName: gpu.nvidia.com, allocationMode: All}},
  {name: either, firstAvailable: [{name: mig, deviceClassName: mig.nvidia.com}]}]}}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: train}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {resourceClaimsPerNode: [{name: gpus, resourceClaimTemplateName: gpus}]}
`
	submitted, err := jobs.NewCluster(shipped(t)).Submit(t.Context(), load(t, file), now())
	if err != nil {
		t.Fatal(err)
	}
	if len(submitted) != 1 || len(submitted[0].Devices.Templates) != 1 {
		t.Fatalf("submitted %+v, want a job with a template", submitted)
	}
	type request struct {
		mode  resourcev1.DeviceAllocationMode
		count int64
	}
	want := []request{{"ExactCount", 1}, {"ExactCount", 2}, {"All", 0}, {"ExactCount", 1}}
	for i, r := range submitted[0].Devices.Templates[0].Spec.Spec.Devices.Requests {
		var have request
		if r.Exactly != nil {
			have = request{r.Exactly.AllocationMode, r.Exactly.Count}
		} else {
			have = request{r.FirstAvailable[0].AllocationMode, r.FirstAvailable[0].Count}
		}
		if have != want[i] {
			t.Errorf("request %s has %v, want %v", r.Name, have, want[i])
		}
	}
}
