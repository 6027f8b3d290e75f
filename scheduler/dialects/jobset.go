package dialects

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	jobSetName = "jobset.sigs.k8s.io/jobset-name"
	// gang is the annotation by which pods say whether they are a gang.
	gang = "lockstep.dev/gang"
	// trainJobStep is on pods of TrainJobs, whose controller decides about their gang.
	trainJobStep = "trainer.kubeflow.org/trainjob-ancestor-step"
)

// jobSet is the dialect of JobSets: all pods of one are a gang, unless they say otherwise.
func jobSet() Dialect {
	return Dialect{
		Name: "jobset", Member: Keys{Labels: []string{jobSetName}},
		Group: func(pod *corev1.Pod) string {
			if _, ofTrainJob := pod.Labels[trainJobStep]; ofTrainJob || pod.Annotations[gang] == "off" {
				return ""
			}
			return pod.Labels[jobSetName]
		},
		Source: func(pod *corev1.Pod) Source {
			return Source{
				schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"},
				pod.Labels[jobSetName],
			}
		},
		Minimum: func(pod *corev1.Pod, object map[string]any) (int, error) {
			if ofTrainJob(object) {
				return 1, nil // whose controller has decided which of its pods are a gang; the others start one by one
			}
			if sum := first(object); sum > 0 {
				return sum, nil
			}
			return 0, fmt.Errorf("JobSet %s has no pods that start first: %w", pod.Labels[jobSetName], ErrNoSize)
		},
		Loss: func(*corev1.Pod) Loss { return Replaced },
	}
}

// ofTrainJob reports whether a TrainJob controls a JobSet.
func ofTrainJob(jobSet map[string]any) bool {
	owners, _, _ := unstructured.NestedSlice(jobSet, "metadata", "ownerReferences")
	return slices.ContainsFunc(owners, func(owner any) bool {
		reference, _ := owner.(map[string]any)
		return reference["kind"] == "TrainJob" && reference["controller"] == true
	})
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

// podsOf returns how many pods of a Job run at once at its start.
func podsOf(spec map[string]any) int {
	parallel := field(spec, 1, "parallelism")
	return min(parallel, field(spec, parallel, "completions"))
}
