package kueue_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// extended is a queue for eight devices of a class that pods ask for like a resource, and a job that asks so in
// resourcesPerNode.
const extended = `apiVersion: v1
kind: Namespace
metadata: {name: extended}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: ext.example.com}
spec:
  extendedResourceName: example.com/ext
  selectors: [{cel: {expression: device.driver == "ext.example.com"}}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: extended}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: extended}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [example.com/ext]
    flavors: [{name: extended, resources: [{name: example.com/ext, nominalQuota: 8}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: extended, namespace: extended}
spec: {clusterQueue: extended}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: job
  namespace: extended
  labels: {kueue.x-k8s.io/queue-name: extended}
  annotations: {simulator.lockstep.dev/run-time: 8s}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, resourcesPerNode: {limits: {example.com/ext: 4}}}
`

// A queued job gets devices of its own, without a runtime for them, where their class has an extended resource: Kueue
// counts the resource, and lockstep-scheduler allocates devices for it.
func TestDeviceQuota_ExtendedResourceOfTheJobIsCounted(t *testing.T) {
	for tray := 5; tray < 7; tray++ {
		apply(t, fmt.Sprintf(`apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: ext.example.com-%[1]d}
spec:
  driver: ext.example.com
  nodeName: rack-4-tray-%02[1]d
  pool: {name: ext.example.com-%[1]d, generation: 1, resourceSliceCount: 1}
  devices: [{name: ext-0}, {name: ext-1}, {name: ext-2}, {name: ext-3}]
`, tray))
	}
	h := record(t, "extended")
	done := play(t, write(t, extended))
	_, at := h.next(t, 0, "job", "admitted", state.admitted)
	expectRunning(t, "extended", "job", 2)
	counted, allocated := usage{}, 0
	testcluster.Within(t, 10*time.Second, "8 devices that are counted and allocated", func() bool {
		claims, err := shared.Client.ResourceV1().ResourceClaims("extended").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		allocated = 0
		for _, claim := range claims.Items {
			if claim.Status.Allocation != nil {
				allocated += len(claim.Status.Allocation.Devices.Results)
			}
		}
		counted = quotaUsed(t, "extended")
		return counted["extended example.com/ext"] == "8" && allocated == 8
	})
	t.Logf("Kueue counts %v; %d devices are allocated", counted, allocated)
	_, _ = h.next(t, at, "job", "complete", state.complete)
	if job := (<-done)["job"]; job.Outcome != summary.Complete || len(job.Ranks) != 2 {
		t.Errorf("%+v, want 2 ranks that completed", job)
	}
}
