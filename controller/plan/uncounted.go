package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// Uncounted returns a fault if a job that Kueue queues has resources of its runtime that Kueue would not count. Kueue
// 0.19 counts resourcesPerNode in the place of the runtime's resources, as Kubeflow Trainer 2.2 did, and pods have
// both: a job with requests of CPUs on a runtime with two GPUs would run on two GPUs and use none of its quota.
func Uncounted(job *trainerv1alpha1.TrainJob, runtime Runtime) *field.Error {
	queue, want := job.Labels[KueueQueueLabel], trainerOf(job).ResourcesPerNode
	if queue == "" || want == nil || runtime.Spec.MLPolicy == nil {
		return nil
	}
	missing := map[string]bool{}
	for i := range runtime.Spec.Template.Spec.ReplicatedJobs {
		container := nodeContainer(&runtime.Spec.Template.Spec.ReplicatedJobs[i], companion(policyOf(runtime)))
		if container == nil {
			continue
		}
		for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
			for name, quantity := range list {
				if !names(want, name) && !quantity.IsZero() {
					missing[fmt.Sprintf("%s: %s", name, &quantity)] = true
				}
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return field.Invalid(field.NewPath("spec", "trainer", "resourcesPerNode"), queue, fmt.Sprintf(
		"the job is queued by Kueue (label %s), which counts resourcesPerNode instead of the resources of runtime %s and would not count %s; "+
			"add that to resourcesPerNode",
		KueueQueueLabel,
		runtime.Name,
		strings.Join(slices.Sorted(maps.Keys(missing)), ", "),
	))
}

// names reports whether resources include one.
func names(resources *corev1.ResourceRequirements, name corev1.ResourceName) bool {
	_, requested := resources.Requests[name]
	_, limited := resources.Limits[name]
	return requested || limited
}
