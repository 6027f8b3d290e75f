package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// Drops reports whether a plan takes something away from the pods of a JobSet that JobSet would leave in its Jobs:
// labels, annotations, node selectors, tolerations or scheduling gates. JobSet lets all five change while it is
// suspended, but merges them into the Jobs that it resumes. Without a new JobSet, pods that Kueue admits in a second
// flavor would retain the first flavor's selectors, tolerations and gates.
func Drops(planned, there *jobsetv1alpha2.JobSet) bool {
	return slices.ContainsFunc(there.Spec.ReplicatedJobs, func(old jobsetv1alpha2.ReplicatedJob) bool {
		same := func(next jobsetv1alpha2.ReplicatedJob) bool { return next.Name == old.Name }
		at := slices.IndexFunc(planned.Spec.ReplicatedJobs, same)
		return at >= 0 && dropsOf(planned.Spec.ReplicatedJobs[at].Template.Spec.Template, old.Template.Spec.Template)
	})
}

func dropsOf(next, old corev1.PodTemplateSpec) bool {
	return lacksKey(next.Labels, old.Labels) || lacksKey(next.Annotations, old.Annotations) ||
		lacksKey(next.Spec.NodeSelector, old.Spec.NodeSelector) ||
		slices.ContainsFunc(old.Spec.Tolerations, func(had corev1.Toleration) bool {
			same := func(has corev1.Toleration) bool { return sameToleration(had, has) }
			return !slices.ContainsFunc(next.Spec.Tolerations, same)
		}) ||
		slices.ContainsFunc(old.Spec.SchedulingGates, func(had corev1.PodSchedulingGate) bool {
			return !slices.Contains(next.Spec.SchedulingGates, had)
		})
}

// lacksKey reports whether a map lacks a key of another. A key of both has the new value in a resumed Job.
func lacksKey(next, old map[string]string) bool {
	for key := range maps.Keys(old) {
		if _, ok := next[key]; !ok {
			return true
		}
	}
	return false
}
