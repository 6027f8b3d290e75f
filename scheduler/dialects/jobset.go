package dialects

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// gang is the annotation by which pods say whether they are a gang.
const gang = "lockstep.dev/gang"

// jobSet is the dialect of JobSets: all pods of one are a gang, unless they say otherwise, or a TrainJob's controller decides about their gang.
func jobSet() Dialect {
	const name, trainJobStep = "jobset.sigs.k8s.io/jobset-name", "trainer.kubeflow.org/trainjob-ancestor-step"
	return Dialect{
		Name: "jobset", Member: labels(name),
		Group: func(pod *corev1.Pod) string {
			if _, ofTrainJob := pod.Labels[trainJobStep]; ofTrainJob || pod.Annotations[gang] == "off" {
				return ""
			}
			return pod.Labels[name]
		},
		Source: byLabel(name, "jobsets", "v1alpha2", "jobset.x-k8s.io"),
		Minimum: func(pod *corev1.Pod, object map[string]any) (int, error) {
			owner := metav1.GetControllerOf(&unstructured.Unstructured{Object: object})
			if owner != nil && owner.Kind == "TrainJob" {
				return 1, nil // whose controller has decided which of its pods are a gang; the others start one by one
			}
			if sum := first(object); sum > 0 {
				return sum, nil
			}
			return 0, fmt.Errorf("JobSet %s has no pods that start first: %w", pod.Labels[name], ErrNoSize)
		},
		Loss: func(*corev1.Pod) Loss { return Replaced },
	}
}

// first counts the pods of the replicated jobs that a JobSet starts at once: those of later ones are not created before.
func first(jobSet map[string]any) int {
	jobs, _, _ := unstructured.NestedSlice(jobSet, "spec", "replicatedJobs")
	order, _, _ := unstructured.NestedString(jobSet, "spec", "startupPolicy", "startupPolicyOrder")
	sum := 0
	for _, job := range jobs {
		fields, _ := job.(map[string]any)
		if depends, _, _ := unstructured.NestedSlice(fields, "dependsOn"); len(depends) > 0 {
			continue
		}
		spec, _, _ := unstructured.NestedMap(fields, "template", "spec")
		sum += field(fields, 1, "replicas") * podsOf(spec)
		if order == "InOrder" && sum > 0 {
			break
		}
	}
	return sum
}
