package jobs

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// Phase is the state of a TrainJob, as far as its gangs do not show it.
type Phase string

// The phases.
const (
	Runs      Phase = "running"
	Finished  Phase = "finished"
	Suspended Phase = "suspended"
	Refused   Phase = "refused"
	Ungrouped Phase = "ungrouped"
	Pending   Phase = "pending"
)

// state is the phase that the job's own object shows.
func state(job *trainerv1alpha1.TrainJob) Phase {
	for _, ended := range []string{trainerv1alpha1.TrainJobComplete, trainerv1alpha1.TrainJobFailed} {
		if meta.IsStatusConditionTrue(job.Status.Conditions, ended) {
			return Finished
		}
	}
	if job.Spec.Suspend != nil && *job.Spec.Suspend {
		return Suspended
	}
	return Runs
}

// Why describes the state of a job that has no gang, in a sentence without its name. starts reports whether all its
// existing pods have started.
func (c *Cluster) Why(job *trainerv1alpha1.TrainJob) (phase Phase, sentence string, starts bool) {
	for _, ended := range []string{trainerv1alpha1.TrainJobComplete, trainerv1alpha1.TrainJobFailed} {
		c := meta.FindStatusCondition(job.Status.Conditions, ended)
		if c != nil && c.Status == metav1.ConditionTrue {
			return Finished, fmt.Sprintf("is over: %s (%s)", ended, c.Message), true
		}
	}
	if queue := job.Labels[labelQueue]; state(job) == Suspended && queue != "" {
		return Suspended, "is suspended: it waits for Kueue's admission in queue " + queue +
			"; its Workload says why (kubectl describe workloads.kueue.x-k8s.io)", false
	}
	if state(job) == Suspended {
		return Suspended, "is suspended by spec.suspend; nothing of it exists until that is false", false
	}
	planned, err := c.Plan(job)
	if err != nil {
		return Refused, "cannot be rendered: " + err.Error(), false
	}
	if len(planned.PodGroups) == 0 {
		return c.ungrouped(job)
	}
	return Pending, "has no PodGroup yet: lockstep-controller has not made it; its log says why if that lasts", false
}

// ungrouped describes a job without a gang by its pods, which start one by one.
func (c *Cluster) ungrouped(job *trainerv1alpha1.TrainJob) (phase Phase, sentence string, starts bool) {
	pods, placed := c.pods(job), 0
	for _, pod := range pods {
		if pod.Spec.NodeName != "" {
			placed++
		}
	}
	return Ungrouped, fmt.Sprintf("is no gang, so its pods start one by one: %d of %d have nodes; "+
		"annotation lockstep.dev/gang: \"on\" makes it one", placed, len(pods)), placed == len(pods) && placed > 0
}
