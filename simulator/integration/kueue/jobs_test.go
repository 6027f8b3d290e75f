package kueue_test

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// lenient is a queue that has room for everything, in a namespace of its own.
const lenient = `apiVersion: v1
kind: Namespace
metadata: {name: lenient}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: any}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: lenient}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: any, resources: [{name: nvidia.com/gpu, nominalQuota: 1000}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: lenient, namespace: lenient}
spec: {clusterQueue: lenient}
`

// exported is a job of a namespaced runtime as exported from another cluster, with Kueue's patch and with the values
// that Kueue's struct of a TrainJob, which is that of Kubeflow Trainer 2.2, drops when it writes the job back: empty
// lists, numbers instead of text, a field of 2.3's.
const exported = `---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: own, namespace: lenient, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 1, torch: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec: {template: {spec: {containers: [{name: node, image: none}]}}}
---
apiVersion: trainer.kubeflow.org/v2alpha1
kind: TrainJob
metadata:
  name: exported
  namespace: lenient
  labels: {kueue.x-k8s.io/queue-name: lenient}
  annotations: {simulator.lockstep.dev/run-time: 2s}
spec:
  runtimeRef: {name: own, kind: TrainingRuntime}
  trainer: {numNodes: 2, command: [torchrun], args: [], env: [], resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
  runtimePatches:
  - manager: kueue.x-k8s.io/manager
    trainingRuntimeSpec: {template: {spec: {}}}
  - manager: platform.example.com/patient-team
    trainingRuntimeSpec:
      template:
        spec:
          replicatedJobs:
          - name: node
            template: {spec: {template: {spec: {terminationGracePeriodSeconds: 7}}}}
`

// Kueue writes the whole job back when it admits it, and does not know all of it.
func TestKueue_AdmitsJobWithUnknownFields(t *testing.T) {
	h := record(t, "lenient")
	done := play(t, write(t, lenient+exported))
	submitted, at := h.next(t, 0, "exported", "submitted", state.suspended)
	admitted, _ := h.next(t, at, "exported", "admitted", state.admitted)
	show(t, admitted)
	if job := (<-done)["exported"]; job.Outcome != summary.Complete || len(job.Ranks) != 2 {
		t.Errorf("%+v, want 2 ranks that completed", job)
	}
	patches, _, _ := unstructured.NestedSlice(admitted.object, "spec", "runtimePatches")
	if len(patches) != 3 {
		t.Errorf("%d patches, want one each of Kueue, the team and the simulator: %v", len(patches), admitted)
	}
	before, _ := submitted.patch("platform.example.com/patient-team")
	if after, _ := admitted.patch("platform.example.com/patient-team"); !reflect.DeepEqual(before, after) {
		t.Errorf("the team's patch is %v, and was %v", after, before)
	}
	for _, pod := range podsOf(t, "lenient", "exported") {
		if grace := pod.Spec.TerminationGracePeriodSeconds; grace == nil || *grace != 7 {
			t.Errorf("%s has a grace of %v s, want the team's 7", pod.Name, grace)
		}
	}
}

// A job that names no queue is none of Kueue's business: it starts at once.
func TestKueue_JobWithoutQueueRunsAtOnce(t *testing.T) {
	h := record(t, "free")
	done := play(t, write(t, `apiVersion: v1
kind: Namespace
metadata: {name: free}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: free, namespace: free, annotations: {simulator.lockstep.dev/run-time: 1s}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
`))
	h.next(t, 0, "free", "there, and not suspended", func(s state) bool { return !s.suspended() })
	if job := (<-done)["free"]; job.Outcome != summary.Complete || len(job.Ranks) != 2 {
		t.Errorf("%+v, want 2 ranks that completed", job)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.states {
		if s.suspended() || s.admits() {
			t.Errorf("Kueue meddled: %v", s)
		}
	}
}

func write(t *testing.T, yaml string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
