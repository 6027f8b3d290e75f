package dialects

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// schedulerPlugins is the dialect of the coscheduling plugin of sigs.k8s.io/scheduler-plugins. Kubeflow Trainer, MPI operator, training-operator, KubeRay and
// Spark operator write it, each with ranks of its own.
func schedulerPlugins() Dialect {
	const member, kubeflow = "scheduling.x-k8s.io/pod-group", "training.kubeflow.org/"
	return Dialect{
		Name: "scheduler-plugins", Member: labels(member), Group: labels(member).value,
		Source: byLabel(member, "podgroups", "v1alpha1", "scheduling.x-k8s.io"),
		Minimum: func(pod *corev1.Pod, object map[string]any) (int, error) {
			// Spark operator leaves it at 1, and the CRD has no default.
			if minimum := field(object, 1, "spec", "minMember"); minimum > 0 {
				return minimum, nil
			}
			return 0, fmt.Errorf("spec.minMember of PodGroup %s is not positive: %w", pod.Labels[member], ErrNoSize)
		},
		Rank: numbered([]replicas{
			{types: labels(kubeflow+"replica-type", kubeflow+"job-role"), index: labels(kubeflow + "replica-index")},
			{types: labels("ray.io/node-type"), index: labels("ray.io/worker-group-replica-index")},
		}, "spark-exec-id", "batch.kubernetes.io/job-completion-index"),
		// Spark's driver owns its executors, and replaces none under this name.
		Loss: owned(map[string]Loss{"Pod": Gone}),
		Status: func(gang Standing) map[string]any {
			return map[string]any{
				"phase": string(
					gang.Phase(),
				),
				"occupiedBy":        gang.Owners,
				"scheduleStartTime": gang.Since.UTC().Format(time.RFC3339),
				"running":           int64(gang.Running),
				"succeeded":         int64(gang.Succeeded),
				"failed":            int64(gang.Failed),
			}
		},
	}
}
