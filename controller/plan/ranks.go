package plan

import (
	"slices"

	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// Trainers are the names of the ReplicatedJobs that train, in their order.
func Trainers(spec jobsetv1alpha2.JobSetSpec) []string { return trainers(spec.ReplicatedJobs) }

// Ranks is the number of pods that train.
func Ranks(spec jobsetv1alpha2.JobSetSpec) int32 {
	var out int32
	for _, job := range spec.ReplicatedJobs {
		if slices.Contains(Trainers(spec), job.Name) {
			pods := int32(1)
			if job.Template.Spec.Parallelism != nil {
				pods = *job.Template.Spec.Parallelism
			}
			out += job.Replicas * pods
		}
	}
	return out
}

// Awaited returns the ReplicatedJobs that must be ready or complete before the named one starts, directly or through
// others; a job awaited in both ways must be complete.
func Awaited(spec jobsetv1alpha2.JobSetSpec, name string) map[string]jobsetv1alpha2.DependsOnStatus {
	out := map[string]jobsetv1alpha2.DependsOnStatus{}
	for awaited, how := range awaitedBy(spec, name) {
		out[awaited] = jobsetv1alpha2.DependencyReady
		if how == complete {
			out[awaited] = jobsetv1alpha2.DependencyComplete
		}
	}
	return out
}

// IsGrouped reports whether pods of a JobSet are in PodGroups.
func IsGrouped(spec jobsetv1alpha2.JobSetSpec) bool {
	return slices.ContainsFunc(spec.ReplicatedJobs, func(job jobsetv1alpha2.ReplicatedJob) bool {
		return GroupOf(&job) != ""
	})
}
