package trainjob

import (
	"context"
	"slices"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/utils/ptr"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology"
)

// looksAtStart is the requeue delay of an elastic job that lacks ranks which it needs: no status of a JobSet shows a
// Job's count of ready pods.
const looksAtStart = 5 * time.Second

// elasticGroup returns the index of the PodGroup of an elastic trainer, -1 if the job has one size.
func elasticGroup(groups []schedulingv1beta1.PodGroup) int {
	return slices.IndexFunc(groups, func(group schedulingv1beta1.PodGroup) bool {
		_, ok := topology.SpanOf(group.Annotations)
		return ok
	})
}

// elastic returns the number of ready nodes, and its bounds, of a job whose trainer has this group. The Jobs are read
// live: they are not watched.
func (r *Reconciler) elastic(
	ctx context.Context,
	job *trainerv1alpha1.TrainJob,
	jobSet *jobsetv1alpha2.JobSet,
	group *schedulingv1beta1.PodGroup,
) (*trainerv1alpha1.ElasticStatus, error) {
	span, _ := topology.SpanOf(group.Annotations)
	out := &trainerv1alpha1.ElasticStatus{MinNodes: int32(span.Least), MaxNodes: int32(span.Most)}
	if suspended(job) || !runs(jobSet) {
		return out, nil
	}
	for i := range jobSet.Spec.ReplicatedJobs {
		replicated := &jobSet.Spec.ReplicatedJobs[i]
		if plan.GroupOf(replicated) != group.Name ||
			!slices.Contains(plan.Trainers(jobSet.Spec), replicated.Name) {
			continue
		}
		jobs, err := r.jobsOf(ctx, jobSet, replicated)
		if err != nil {
			return nil, err
		}
		for j := range jobs {
			out.ReadyNodes += ptr.Deref(jobs[j].Status.Ready, 0)
		}
	}
	return out, nil
}

// resizes returns the requeue delay of a running elastic job; zero for any other job.
func resizes(job *trainerv1alpha1.TrainJob) time.Duration {
	status := job.Status.Scheduling
	switch {
	case status == nil || status.Elastic == nil || job.Ended() || suspended(job):
		return 0
	case status.Elastic.ReadyNodes < status.Elastic.MinNodes && status.Phase == trainerv1alpha1.PhaseStarting:
		return looksAtStart
	}
	return lookAgain
}
