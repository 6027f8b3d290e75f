package integration_test

import (
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/outcome"
)

// A runtime may group its initializers, which start one by one, and its nodes, which are a gang in one domain. What it says is
// served also where the native field is dropped.
func TestARuntimeWithSeveralGroups(t *testing.T) {
	job := play(t, 10*time.Second, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainingRuntime
metadata: {name: grouped, namespace: NAMESPACE, labels: {trainer.kubeflow.org/framework: torch}}
spec:
  mlPolicy: {numNodes: 8, torch: {}}
  scheduling:
    replicatedJobs:
    - {targetReplicatedJobs: [dataset-initializer], schedulingPolicy: {basic: {}}}
    - targetReplicatedJobs: [node]
      schedulingPolicy: {gang: {}}
      schedulingConstraints: {topology: [{key: nvidia.com/gpu.clique}]}
      disruptionMode: {all: {}}
  template:
    spec:
      replicatedJobs:
      - name: dataset-initializer
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: dataset-initializer}}
          spec:
            template:
              spec:
                containers: [{name: dataset-initializer, image: initializer}]
      - name: node
        dependsOn: [{name: dataset-initializer, status: Complete}]
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                containers: [{name: node, image: torch, resources: {limits: {nvidia.com/gpu: 4}}}]
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: job, namespace: NAMESPACE, annotations: {simulator.lockstep.dev/run-time: 1s}}
spec: {runtimeRef: {name: grouped, kind: TrainingRuntime}}
`)["job"]
	if job.Outcome != outcome.Complete {
		t.Fatalf("%s (%s)", job.Outcome, job.Reason)
	}
	inOneClique(t, job, 8)
	if policy := groupOf(t, "job-dataset-initializer").Spec.SchedulingPolicy; policy.Basic == nil {
		t.Errorf("the initializers' policy is %+v, want basic", policy)
	}
	nodes := groupOf(t, "job-node").Spec
	if nodes.SchedulingPolicy.Gang == nil || nodes.SchedulingPolicy.Gang.MinCount != 8 || nodes.DisruptionMode == nil {
		t.Errorf("the nodes' group is %+v, want a gang of 8 that is disrupted as one", nodes)
	}
	for _, pod := range podsOf(t.Context(), t, namespaceOf(t), "job") {
		if group := pod.Spec.SchedulingGroup; group == nil || pod.Spec.SchedulerName != ours {
			t.Errorf("pod %s is in group %v, of scheduler %s", pod.Name, group, pod.Spec.SchedulerName)
		}
	}
}
