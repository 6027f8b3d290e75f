package reportload

import (
	"fmt"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/simulator/bench/loadtest"
)

// source is about as long as a small training function, which Kubeflow's SDK puts into the arguments of a job.
const source = 2 << 10

// TrainJobs is the resource that is reported on.
func TrainJobs() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}
}

// Name is the name of the i-th job.
func Name(i int) string { return fmt.Sprintf("reports-%05d", i) }

// TrainJob is the i-th job: no gang, one node, with its source in its arguments.
func TrainJob(namespace string, i int) *unstructured.Unstructured {
	code := fmt.Sprintf("# job %d\n", i) + strings.Repeat("loss.backward()\n", source/len("loss.backward()\n"))
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
		"metadata": map[string]any{
			"name": Name(i), "namespace": namespace, "annotations": map[string]any{"lockstep.dev/gang": "off"},
		},
		"spec": map[string]any{
			"runtimeRef": map[string]any{"name": loadtest.RuntimeName},
			"trainer":    map[string]any{"command": []any{"python", "-c"}, "args": []any{code}},
		},
	}}
}

// Pod returns the pod that a Job of a JobSet would get. Its node does not exist: that it has one is all that counts.
func Pod(job *batchv1.Job) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: job.Namespace,
			Name:      job.Name + "-0",
			Labels:    map[string]string{jobsetv1alpha2.JobSetNameKey: job.Labels[jobsetv1alpha2.JobSetNameKey]},
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job")),
			},
		},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "node", Image: "none"}},
			NodeName:   "none",
		},
	}
}
