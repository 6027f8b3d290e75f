package trainjob

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// expire deletes a job that ended longer ago than its runtime's TTL, or returns the time left. It reads the runtime in
// the cluster, not the job's copy: the administrator sets the TTL of finished jobs, also of jobs that finished before
// the change. Without a runtime a job stays.
func (r *Reconciler) expire(ctx context.Context, job *trainerv1alpha1.TrainJob) (time.Duration, error) {
	if !job.Ended() {
		return 0, nil
	}
	found, err := r.Resolver.Cached(ctx, job)
	switch {
	case errors.Is(err, resolve.ErrMissing), errors.Is(err, resolve.ErrUnknown):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("finding how long TrainJob %s is kept: %w", client.ObjectKeyFromObject(job), err)
	}
	seconds := found.Runtime.Spec.TTLSecondsAfterFinished
	if seconds == nil {
		return 0, nil
	}
	if left := time.Duration(*seconds)*time.Second - r.Clock.Since(endOf(job)); left > 0 {
		return left, nil
	}
	return 0, r.erase(ctx, job)
}

// expires reports whether a runtime has a TTL for finished jobs.
func expires(runtime client.Object) bool {
	switch runtime := runtime.(type) {
	case *trainerv1alpha1.TrainingRuntime:
		return runtime.Spec.TTLSecondsAfterFinished != nil
	case *trainerv1alpha1.ClusterTrainingRuntime:
		return runtime.Spec.TTLSecondsAfterFinished != nil
	default:
		return false
	}
}
