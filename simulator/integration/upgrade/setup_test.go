package upgrade_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// setUp creates the namespace of the jobs and their runtime, whose pods run until the test completes them. It has the
// jobs deleted when the test ends.
func (j *jobs) setUp() {
	j.t.Helper()
	_, err := shared.Client.CoreV1().Namespaces().Create(j.t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: j.namespace}}, metav1.CreateOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	for _, runtime := range runtimes() {
		j.createRuntime(runtime)
	}
	j.t.Cleanup(j.clear)
}

// clear deletes the jobs, so that the next test finds free nodes.
func (j *jobs) clear() {
	ctx := context.WithoutCancel(j.t.Context())
	err := shared.Dynamic.Resource(trainer("trainjobs")).Namespace(j.namespace).
		DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		j.t.Error(err)
	}
	err = wait.PollUntilContextTimeout(ctx, time.Second, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		pods, err := shared.Client.CoreV1().Pods(j.namespace).List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil && len(pods.Items) == 0, nil
	})
	if err != nil {
		j.t.Errorf("the pods of %s stay: %v", j.namespace, err)
	}
}

func (j *jobs) createRuntime(runtime map[string]any) {
	j.t.Helper()
	runtime["apiVersion"] = "trainer.kubeflow.org/v1alpha1"
	_, err := shared.Dynamic.Resource(trainer("trainingruntimes")).Namespace(j.namespace).
		Create(j.t.Context(), &unstructured.Unstructured{Object: runtime}, metav1.CreateOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
}

func (j *jobs) createJob(kind, name string) {
	j.t.Helper()
	queued := kind == "queued"
	metadata := map[string]any{"name": name}
	if queued {
		metadata["labels"] = map[string]any{"kueue.x-k8s.io/queue-name": "team"}
	}
	if namesClass(name) && shapeOf(name) != urgent {
		metadata["annotations"] = map[string]any{priorityKey: priorityClass}
	}
	spec := map[string]any{
		"suspend": queued, "runtimeRef": map[string]any{"kind": "TrainingRuntime", "name": string(shapeOf(name))},
	}
	if shapeOf(name) == staged {
		spec["initializer"] = map[string]any{"dataset": map[string]any{"storageUri": "hf://example/data"}}
	}
	job := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": metadata, "spec": spec,
	}}
	_, err := shared.Dynamic.Resource(trainer("trainjobs")).Namespace(j.namespace).
		Create(j.t.Context(), job, metav1.CreateOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
}

func (j *jobs) patch(name, text string) {
	j.t.Helper()
	_, err := shared.Dynamic.Resource(trainer("trainjobs")).Namespace(j.namespace).
		Patch(j.t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
}
