package situation

import (
	"fmt"
	"slices"

	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// statusOf returns a JobSet's status of one of its ReplicatedJobs; zero if there is none yet.
func statusOf(jobSet *jobsetv1alpha2.JobSet, name string) jobsetv1alpha2.ReplicatedJobStatus {
	for _, status := range jobSet.Status.ReplicatedJobsStatus {
		if status.Name == name {
			return status
		}
	}
	return jobsetv1alpha2.ReplicatedJobStatus{}
}

// hasPods reports whether a ReplicatedJob has pods, or had some that ended well.
func hasPods(jobSet *jobsetv1alpha2.JobSet, name string) bool {
	status := statusOf(jobSet, name)
	return status.Active+status.Ready+status.Succeeded > 0
}

// LacksPods reports whether a ReplicatedJob of a JobSet has no pods yet.
func LacksPods(jobSet *jobsetv1alpha2.JobSet) bool {
	return slices.ContainsFunc(jobSet.Spec.ReplicatedJobs, func(job jobsetv1alpha2.ReplicatedJob) bool {
		return !hasPods(jobSet, job.Name)
	})
}

// outstanding returns the ReplicatedJobs for which the named one still waits, in the order of the JobSet. An
// initializer with a ready pod is outstanding until that pod is complete.
func outstanding(jobSet *jobsetv1alpha2.JobSet, name string) []string {
	awaited := plan.Awaited(jobSet.Spec, name)
	var out []string
	for _, job := range jobSet.Spec.ReplicatedJobs {
		how, ok := awaited[job.Name]
		if ok && doneOf(statusOf(jobSet, job.Name), how) < job.Replicas {
			out = append(out, job.Name)
		}
	}
	return out
}

// doneOf returns the number of child Jobs that have reached the state that a dependency wants.
func doneOf(status jobsetv1alpha2.ReplicatedJobStatus, how jobsetv1alpha2.DependsOnStatus) int32 {
	if how == jobsetv1alpha2.DependencyComplete {
		return status.Succeeded
	}
	return status.Ready + status.Succeeded
}

// refusal returns why the pods of a ReplicatedJob are refused, of the first one that has none; false if those of all
// exist, or are admitted.
func refusal(jobSet *jobsetv1alpha2.JobSet, refused map[string]string) (bool, string) {
	if jobSet == nil {
		return false, ""
	}
	for i := range jobSet.Spec.ReplicatedJobs {
		name := jobSet.Spec.ReplicatedJobs[i].Name
		if why, ok := refused[name]; ok && !hasPods(jobSet, name) {
			return true, why
		}
	}
	return false, ""
}

// podless is the reason for which a group has no pods.
type podless struct {
	// behind is set if an earlier ReplicatedJob runs, for example an initializer.
	behind bool
	// job is the first ReplicatedJob, of the group or awaited by it, that has yet to be complete or ready.
	job string
}

// podlessOf returns why a group has no pods; nil if it has some, or if the JobSet does not know the group. An empty
// name stands for all groups of the JobSet.
func podlessOf(jobSet *jobsetv1alpha2.JobSet, group string) *podless {
	out := &podless{}
	for i := range jobSet.Spec.ReplicatedJobs {
		job := &jobSet.Spec.ReplicatedJobs[i]
		if of := plan.GroupOf(job); of == "" || group != "" && of != group {
			continue
		}
		if hasPods(jobSet, job.Name) {
			return nil
		}
		first := outstanding(jobSet, job.Name)
		out.behind = out.behind || slices.ContainsFunc(first, func(name string) bool { return hasPods(jobSet, name) })
		if out.job == "" {
			out.job = append(first, job.Name)[0]
		}
	}
	if out.job == "" {
		return nil
	}
	return out
}

// message reports that no pod is created, and names the place of the reason: quotas and webhooks answer the Job's
// controller, not us.
func (p *podless) message(jobSet *jobsetv1alpha2.JobSet) string {
	return fmt.Sprintf("no pod of %s is created: see the Events of Job %s-%s-0 and of JobSet %s",
		p.job, jobSet.Name, p.job, jobSet.Name)
}
