package trainjob

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// reasonReplaced is the reason of the Event for a job's JobSet that is deleted and created anew.
const reasonReplaced = "JobSetReplaced"

// applyOrReplace applies a JobSet. A suspended JobSet that does not permit the change is deleted; the next one is
// created after that, and waiting is true until then. A suspended JobSet permits changes of its pods' labels,
// annotations, node selectors, tolerations and gates, and of nothing else in them, and it removes none of these from
// its Jobs. A JobSet whose volume claims would be deleted with it is not replaced.
func (r *Reconciler) applyOrReplace(
	ctx context.Context, job *trainerv1alpha1.TrainJob, planned frozenPlan, there *jobsetv1alpha2.JobSet,
) (waiting bool, err error) {
	if keepsDropped(planned, there) {
		if active(there) {
			return true, nil // its pods are deleted first
		}
		return true, r.replace(ctx, job, there)
	}
	refusal := r.applyJobSet(ctx, planned, there)
	if refusal == nil || there == nil || !apierrors.IsInvalid(refusal) {
		return false, refusal
	}
	switch {
	case isTrue(there.Spec.Suspend) && !active(there) && plan.LosesVolumes(there):
		return false, r.keep(ctx, job, planned, there, refusal)
	case planned.state.Spec.Rendering == planned.rendering && r.applied.knows(there.UID):
		return false, refusal // this process made it of the same: another one would be refused, too
	case !isTrue(there.Spec.Suspend) || active(there):
		return true, nil // its pods are deleted first
	}
	return true, r.replace(ctx, job, there)
}

// keepsDropped reports whether the Jobs of a suspended JobSet would retain entries that the plan no longer has. It is
// evaluated once for each rendering, so that a JobSet to which a webhook always adds a label is not replaced for ever.
func keepsDropped(planned frozenPlan, there *jobsetv1alpha2.JobSet) bool {
	return there != nil && isTrue(there.Spec.Suspend) && !planned.recorded() && !plan.LosesVolumes(there) &&
		plan.Drops(planned.JobSet, there)
}

// replace deletes a suspended JobSet, and the groups that were made for a later start than the first of the next one.
// The JobSet stays until its Jobs are deleted: the next one needs their names.
func (r *Reconciler) replace(ctx context.Context, job *trainerv1alpha1.TrainJob, there *jobsetv1alpha2.JobSet) error {
	if there.Status.Restarts > 0 {
		groups, err := r.gangObjects(ctx, job)
		if err != nil {
			return err
		}
		for _, group := range groups {
			if err := r.remove(ctx, job, group); err != nil {
				return err
			}
		}
	}
	seen := client.Preconditions{UID: &there.UID, ResourceVersion: &there.ResourceVersion}
	err := r.Client.Delete(ctx, there.DeepCopy(), seen, client.PropagationPolicy(metav1.DeletePropagationForeground))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it has changed since it was read
		return nil
	case err != nil:
		return fmt.Errorf("deleting JobSet %s, to make it anew: %w", client.ObjectKeyFromObject(there), err)
	}
	r.Recorder.Eventf(job, corev1.EventTypeNormal, reasonReplaced,
		"The suspended JobSet does not take what the job has become, so it is deleted and made anew")
	return nil
}

// active reports whether a JobSet's status shows pods.
func active(jobSet *jobsetv1alpha2.JobSet) bool {
	for _, status := range jobSet.Status.ReplicatedJobsStatus {
		if status.Active > 0 || status.Ready > 0 {
			return true
		}
	}
	return false
}
