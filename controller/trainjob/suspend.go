package trainjob

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// setSuspendedCondition writes the condition Suspended. A job that never was suspended has none. A resumed job stays
// suspended until its JobSet runs: the message names the hindrance. Its deadline does not run until then.
func (r *Reconciler) setSuspendedCondition(job *trainerv1alpha1.TrainJob, hindrance string) {
	condition := metav1.Condition{
		Type:               trainerv1alpha1.TrainJobSuspended,
		Status:             metav1.ConditionTrue,
		Reason:             trainerv1alpha1.ReasonSuspended,
		Message:            "TrainJob is suspended",
		LastTransitionTime: metav1.NewTime(r.Clock.Now()),
	}
	if !suspended(job) {
		if !meta.IsStatusConditionTrue(job.Status.Conditions, trainerv1alpha1.TrainJobSuspended) {
			return
		}
		if hindrance == "" {
			condition.Status = metav1.ConditionFalse
			condition.Reason = trainerv1alpha1.ReasonResumed
			condition.Message = "TrainJob is resumed"
		} else {
			condition.Message = "not resumed: " + hindrance
		}
	}
	meta.SetStatusCondition(&job.Status.Conditions, condition)
}

// hindrance returns the reason why the JobSet of a job does not run although the job is not suspended; empty if it
// does, or the job has ended.
func hindrance(done outcome, jobSet *jobsetv1alpha2.JobSet) string {
	switch {
	case runs(jobSet) && jobSet.DeletionTimestamp.IsZero():
		return ""
	case done.err != nil:
		return brief(done.err)
	default:
		return done.awaits
	}
}

// runs reports whether there is a JobSet that may have pods.
func runs(jobSet *jobsetv1alpha2.JobSet) bool { return jobSet != nil && !isTrue(jobSet.Spec.Suspend) }

// stop suspends a JobSet and changes nothing else of it, so that a user's suspension cannot fail for another change. It
// returns the suspended JobSet, by which the rest of the pass decides.
func (r *Reconciler) stop(ctx context.Context, jobSet *jobsetv1alpha2.JobSet) (*jobsetv1alpha2.JobSet, error) {
	next := jobSet.DeepCopy()
	next.Spec.Suspend = new(true)
	if err := r.Client.Patch(ctx, next, client.MergeFrom(jobSet), client.FieldOwner(fieldManager)); err != nil {
		return nil, fmt.Errorf("suspending JobSet %s: %w", client.ObjectKeyFromObject(jobSet), err)
	}
	return next, nil
}
