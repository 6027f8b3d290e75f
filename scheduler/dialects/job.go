package dialects

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// job is the dialect of Jobs whose pods say that they are a gang: most Jobs are a queue of independent tasks.
func job() Dialect {
	const name = "batch.kubernetes.io/job-name"
	return Dialect{
		Name: "job", Member: labels(name),
		Group: func(pod *corev1.Pod) string {
			if pod.Annotations[gang] != "on" {
				return ""
			}
			return pod.Labels[name]
		},
		Source: byLabel(name, "jobs", "v1", "batch"),
		Minimum: func(pod *corev1.Pod, object map[string]any) (int, error) {
			spec, _, _ := unstructured.NestedMap(object, "spec")
			if pods := podsOf(spec); pods > 0 {
				return pods, nil
			}
			return 0, fmt.Errorf("the parallelism of Job %s is 0: %w", pod.Labels[name], ErrNoSize)
		},
		Loss: func(*corev1.Pod) Loss { return Replaced },
	}
}

// podsOf returns the number of pods of a Job that run at once at its start.
func podsOf(spec map[string]any) int {
	parallel := field(spec, 1, "parallelism")
	return min(parallel, field(spec, parallel, "completions"))
}
