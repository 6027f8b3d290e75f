package kueue_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// fetching is a job, in a namespace and the queue of its name, whose trainers wait for an initializer of twelve
// seconds.
func fetching(namespace string) string {
	return fmt.Sprintf(`---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: fetching, namespace: %[1]s, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 2, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: dataset-initializer
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec: {template: {spec: {containers: [{name: dataset-initializer, image: none}]}}}
      - name: node
        dependsOn: [{name: dataset-initializer, status: Complete}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec: {containers: [{name: node, image: none, resources: {limits: {nvidia.com/gpu: 4}}}]}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: fetching
  namespace: %[1]s
  labels: {kueue.x-k8s.io/queue-name: %[1]s}
  annotations: {simulator.lockstep.dev/run-time: 12s}
spec:
  runtimeRef: {name: fetching, kind: TrainingRuntime}
`, namespace)
}

// An initializer that works for longer than a job may wait for nodes is no wait for nodes: Lockstep's AdmissionCheck
// stays Ready.
func TestAdmissionCheck_InitializerIsNoWait(t *testing.T) {
	h := record(t, "fetching")
	queue := strings.Replace(oneRack("fetching", "rack-2"), "  resourceGroups:",
		"  admissionChecksStrategy: {admissionChecks: [{name: fetching-nodes}]}\n  resourceGroups:", 1)
	done := play(t, write(t, `apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: fetching-nodes}
spec: {controllerName: lockstep.dev/nodes}
---
`+queue+fetching("fetching")))
	_, at := h.next(t, 0, "fetching", "admitted", state.admitted)
	_, end := h.next(t, at, "fetching", "complete", state.complete)
	h.never(t, at, end, "fetching", "suspended", state.suspended)
	logChecks(t, "fetching", "fetching")
	if job := (<-done)["fetching"]; job.Outcome != summary.Complete {
		t.Errorf("%+v, want complete", job)
	}
}

// Kueue's waitForPodsReady counts the time of an initializer. A shorter timeout evicts the job before its trainers
// exist.
func TestWaitForPodsReady_CountsInitializers(t *testing.T) {
	restartKueue(t, map[string]any{"waitForPodsReady": map[string]any{"timeout": "6s", "recoveryTimeout": "24h"}})
	h := record(t, "hasty")
	_, _ = shared.Submit(t, write(t, oneRack("hasty", "rack-2")+fetching("hasty")))
	_, at := h.next(t, 0, "fetching", "admitted", state.admitted)
	_, _ = h.next(t, at, "fetching", "evicted, while its initializer works", state.quiet)
	expectEviction(t, "hasty", "fetching", "PodsReadyTimeout")
}
