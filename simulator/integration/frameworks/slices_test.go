package frameworks_test

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// slicedRuntime is a JAX runtime of two slices of two hosts with two chips each.
const slicedRuntime = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: jax-slices, labels: {trainer.kubeflow.org/framework: jax}}
spec:
  mlPolicy: {numNodes: 4, jax: {}}
  template:
    spec:
      replicatedJobs:
      - name: node
        replicas: 2
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                nodeSelector: {cloud.google.com/gke-tpu-topology: 2x2}
                containers:
                - name: node
                  image: nvcr.io/nvidia/jax:25.10-py3
                  resources: {limits: {google.com/tpu: 2}}
`

// Two slices of two JAX processes: each slice is on the node that plays its pool, and JAX's own detection of slices
// reads from the variables the same as the arguments in the environment. The nodes have CPUs, and report chips.
func TestJAX_TwoSlices(t *testing.T) {
	for i, node := range nodes {
		labels := fmt.Sprintf(`{"metadata":{"labels":{"cloud.google.com/gke-nodepool":"pool-%d",
			"cloud.google.com/gke-tpu-topology":"2x2","cloud.google.com/gke-accelerator-count":"2"}}}`, i)
		if _, err := shared.Client.CoreV1().Nodes().
			Patch(t.Context(), node.Name, types.MergePatchType, []byte(labels), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := node.Offer(t.Context(), shared.Client, "google.com/tpu", 4); err != nil {
			t.Fatal(err)
		}
	}
	var runtime unstructured.Unstructured
	if err := yaml.Unmarshal([]byte(slicedRuntime), &runtime.Object); err != nil {
		t.Fatal(err)
	}
	if err := shared.Apply(context.WithoutCancel(t.Context()), &runtime); err != nil {
		t.Fatal(err)
	}
	complete(t, "jax-slices", "Coordinator jax-slices-node-0-0.jax-slices:29500, 4 processes",
		"slice 0: process 0 detected, 0 given", "slice 0: process 1 detected, 1 given",
		"slice 1: process 2 detected, 2 given", "slice 1: process 3 detected, 3 given")
}
