package trainjob

import (
	"context"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology"
)

// lookAgain is the requeue delay of a gang that misses members: no status of a JobSet shows how many pods of one Job
// are complete.
const lookAgain = 30 * time.Second

// remainder lowers the minimum of a gang that started, and misses members now, to the number that it has left: within
// an attempt of the JobSet complete members are not recreated, so a recreated one would wait for them for ever. A
// restart of the JobSet recreates all members, and raises the minimum to all of them again. It returns the requeue
// delay; zero for a gang that misses none.
//
// Gangs with late members are left unchanged: no Job shows which of their members are not needed.
func (r *Reconciler) remainder(
	ctx context.Context, planned plan.Plan, jobSet *jobsetv1alpha2.JobSet,
) (time.Duration, error) {
	if !runs(jobSet) || jobSet.Status.TerminalState != "" {
		return 0, nil
	}
	again := time.Duration(0)
	for _, group := range planned.PodGroups {
		_, late := group.Annotations[topology.AnnotationLateMembers]
		if group.Spec.SchedulingPolicy.Gang == nil || late || !misses(jobSet, group.Name) {
			continue
		}
		have := &schedulingv1beta1.PodGroup{}
		err := r.Client.Get(ctx, client.ObjectKeyFromObject(group), have)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return again, fmt.Errorf("getting %s: %w", describe(group), err)
		}
		if !meta.IsStatusConditionTrue(have.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled) {
			continue
		}
		again = lookAgain
		complete, err := r.complete(ctx, jobSet, group.Name)
		if err != nil {
			return again, err
		}
		if err := r.need(ctx, have, max(group.Spec.SchedulingPolicy.Gang.MinCount-complete, 1)); err != nil {
			return again, err
		}
	}
	return again, nil
}

// misses reports whether some Job of the group has fewer pods that run, or are complete, than it is to have.
func misses(jobSet *jobsetv1alpha2.JobSet, group string) bool {
	for i := range jobSet.Spec.ReplicatedJobs {
		replicated := &jobSet.Spec.ReplicatedJobs[i]
		if plan.GroupOf(replicated) != group {
			continue
		}
		for _, status := range jobSet.Status.ReplicatedJobsStatus {
			if status.Name == replicated.Name && status.Ready+status.Succeeded < replicated.Replicas {
				return true
			}
		}
	}
	return false
}

// complete returns the number of members of the group that have ended well in this attempt of the JobSet. Jobs of one
// member are counted in the status of the JobSet, since a gang may have thousands of them. Other Jobs are read live, as
// they are not watched.
func (r *Reconciler) complete(ctx context.Context, jobSet *jobsetv1alpha2.JobSet, group string) (int32, error) {
	if restarting(jobSet) {
		return 0, nil
	}
	complete := int32(0)
	for i := range jobSet.Spec.ReplicatedJobs {
		replicated := &jobSet.Spec.ReplicatedJobs[i]
		if plan.GroupOf(replicated) != group {
			continue
		}
		if ptr.Deref(replicated.Template.Spec.Completions, 0) == 1 {
			// Such a Job is complete exactly when its pod has succeeded.
			complete += statusOf(jobSet, replicated.Name).Succeeded
			continue
		}
		jobs, err := r.jobsOf(ctx, jobSet, replicated)
		if err != nil {
			return 0, err
		}
		for i := range jobs {
			complete += jobs[i].Status.Succeeded
		}
	}
	return complete, nil
}

// restarting reports whether a JobSet's counts are of an attempt that has failed: the JobSet controller writes them
// once more together with the number of the next attempt.
func restarting(jobSet *jobsetv1alpha2.JobSet) bool {
	failed := func(status jobsetv1alpha2.ReplicatedJobStatus) bool { return status.Failed > 0 }
	return slices.ContainsFunc(jobSet.Status.ReplicatedJobsStatus, failed)
}

// statusOf returns a JobSet's counts of a ReplicatedJob; zeros if it has none yet.
func statusOf(jobSet *jobsetv1alpha2.JobSet, name string) jobsetv1alpha2.ReplicatedJobStatus {
	for _, status := range jobSet.Status.ReplicatedJobsStatus {
		if status.Name == name {
			return status
		}
	}
	return jobsetv1alpha2.ReplicatedJobStatus{}
}

// jobsOf reads the Jobs of a ReplicatedJob live, those of this attempt that exist.
func (r *Reconciler) jobsOf(
	ctx context.Context, jobSet *jobsetv1alpha2.JobSet, replicated *jobsetv1alpha2.ReplicatedJob,
) ([]batchv1.Job, error) {
	var out []batchv1.Job
	for index := range replicated.Replicas {
		var job batchv1.Job
		key := types.NamespacedName{
			Namespace: jobSet.Namespace, Name: fmt.Sprintf("%s-%s-%d", jobSet.Name, replicated.Name, index),
		}
		err := r.Live.Get(ctx, key, &job)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("getting Job %s: %w", key, err)
		case ended(&job) || attemptOf(&job) < jobSet.Status.Restarts:
		default:
			out = append(out, job)
		}
	}
	return out, nil
}

// ended reports whether a Job will create no pods any more, although some of its pods may have failed. Its successor
// creates all of them again.
func ended(job *batchv1.Job) bool {
	return !job.DeletionTimestamp.IsZero() ||
		slices.ContainsFunc(job.Status.Conditions, func(condition batchv1.JobCondition) bool {
			return condition.Status == corev1.ConditionTrue &&
				(condition.Type == batchv1.JobFailureTarget || condition.Type == batchv1.JobFailed)
		})
}

// need sets how many members of a group have to be there for others to start.
func (r *Reconciler) need(ctx context.Context, group *schedulingv1beta1.PodGroup, members int32) error {
	gang := group.Spec.SchedulingPolicy.Gang
	if gang == nil || gang.MinCount == members {
		return nil
	}
	next := group.DeepCopy()
	next.Spec.SchedulingPolicy.Gang.MinCount = members
	if err := r.Client.Patch(ctx, next, client.MergeFrom(group), client.FieldOwner(fieldManager)); err != nil {
		return fmt.Errorf("setting what %s needs: %w", describe(group), err)
	}
	klog.FromContext(ctx).V(2).Info("A gang needs as many members as it has left",
		"podGroup", klog.KObj(group), "before", gang.MinCount, "now", members)
	return nil
}
