package trainjob

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// reasonReplaced is the reason of the Event that tells that a job's JobSet is deleted and made anew.
const reasonReplaced = "JobSetReplaced"

// errKeepsVolumes indicates that a JobSet is not replaced, because what its pods have saved would be deleted with it.
var errKeepsVolumes = errors.New(
	"the JobSet would have to be made anew, and its volume claims would be deleted with it; " +
		"undo the change, or create the job again",
)

// applyOrReplace applies a JobSet. One that is suspended, and does not let the change be made, is deleted; the next one is made when it
// has gone, and waiting is true until then. A JobSet lets labels, annotations, node selectors, tolerations and gates of its pods change
// while it is suspended, and nothing else of them.
func (r *Reconciler) applyOrReplace(
	ctx context.Context, job *trainerv1alpha1.TrainJob, planned frozenPlan, there *jobsetv1alpha2.JobSet,
) (waiting bool, err error) {
	refusal := r.applyJobSet(ctx, planned, there)
	if refusal == nil || there == nil || !apierrors.IsInvalid(refusal) {
		return false, refusal
	}
	switch {
	case planned.state.Spec.Rendering == planned.rendering && r.applied.knows(there.UID):
		return false, refusal // this process made it of the same: another one would be refused, too
	case !isTrue(there.Spec.Suspend) || active(there):
		return true, nil // its pods go first
	case keepsVolumes(there):
		return false, errors.Join(errKeepsVolumes, refusal)
	}
	return true, r.replace(ctx, job, there)
}

// replace deletes a suspended JobSet, and the groups that were made for a later start than the first of the next one. The JobSet stays until
// its Jobs have gone: the next one needs their names.
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
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // it is not as it was seen
		return nil
	case err != nil:
		return fmt.Errorf("deleting JobSet %s, to make it anew: %w", client.ObjectKeyFromObject(there), err)
	}
	r.Recorder.Eventf(job, corev1.EventTypeNormal, reasonReplaced,
		"The suspended JobSet does not take what the job has become, so it is deleted and made anew")
	return nil
}

// active reports whether a JobSet has pods, as far as it knows.
func active(jobSet *jobsetv1alpha2.JobSet) bool {
	for _, status := range jobSet.Status.ReplicatedJobsStatus {
		if status.Active > 0 || status.Ready > 0 {
			return true
		}
	}
	return false
}

// keepsVolumes reports whether volume claims would be deleted with a JobSet whose pods may have written to them. Only an explicit Retain
// retains them: JobSet's default is deletion. A suspended JobSet of the first generation has never had pods.
func keepsVolumes(jobSet *jobsetv1alpha2.JobSet) bool {
	if jobSet.Generation <= 1 {
		return false
	}
	for _, policy := range jobSet.Spec.VolumeClaimPolicies {
		retention := ptr.Deref(policy.RetentionPolicy, jobsetv1alpha2.VolumeRetentionPolicy{})
		if ptr.Deref(
			retention.WhenDeleted,
			jobsetv1alpha2.RetentionPolicyDelete,
		) == jobsetv1alpha2.RetentionPolicyDelete {
			return true
		}
	}
	return false
}
