package trainjob

import (
	"context"
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// The JobSet controller deletes a JobSet when its TTL is over, also while no controller of TrainJobs runs. The next one
// would find an unfinished job without a JobSet, and train it again over its own output. So a JobSet gets the TTL of
// its runtime's template only once its job's end is recorded. It counts from the end all the same.

// dropTTL removes the TTL of a running JobSet that an earlier version or Kubeflow Trainer has rendered. Its job has a
// plan, so that its runtime is recorded, by which setTTL restores it.
func (r *Reconciler) dropTTL(ctx context.Context, jobSet *jobsetv1alpha2.JobSet) error {
	if !runs(jobSet) || jobSet.Spec.TTLSecondsAfterFinished == nil || jobSet.Status.TerminalState != "" {
		return nil
	}
	return r.patchTTL(ctx, jobSet, nil)
}

// setTTL gives the JobSet of an ended job the TTL of the runtime with which the job started. A JobSet with a TTL is
// left unchanged.
func (r *Reconciler) setTTL(
	ctx context.Context, job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet,
) error {
	if jobSet == nil || !jobSet.DeletionTimestamp.IsZero() || jobSet.Spec.TTLSecondsAfterFinished != nil {
		return nil
	}
	found, err := r.Resolver.Find(ctx, job)
	switch {
	case errors.Is(err, resolve.ErrFrozen), errors.Is(err, resolve.ErrMissing), errors.Is(err, resolve.ErrUnknown):
		return nil // the rest of the job is deleted all the same
	case err != nil:
		return fmt.Errorf("finding how long JobSet %s is kept: %w", client.ObjectKeyFromObject(jobSet), err)
	}
	seconds := found.Runtime.Spec.Template.Spec.TTLSecondsAfterFinished
	if seconds == nil {
		return nil
	}
	return r.patchTTL(ctx, jobSet, new(*seconds))
}

func (r *Reconciler) patchTTL(ctx context.Context, jobSet *jobsetv1alpha2.JobSet, seconds *int32) error {
	next := jobSet.DeepCopy()
	next.Spec.TTLSecondsAfterFinished = seconds
	err := r.Client.Patch(ctx, next, client.MergeFrom(jobSet), client.FieldOwner(fieldManager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("setting the TTL of JobSet %s: %w", client.ObjectKeyFromObject(jobSet), err)
	}
	return nil
}
