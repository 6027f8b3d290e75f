package trainjob

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// enforceDeadline fails a job that has been active for longer than permitted, or returns the time left. The clock
// starts at creation and again at each resumption; it stops while the job is suspended, or not resumed yet.
func (r *Reconciler) enforceDeadline(job *trainerv1alpha1.TrainJob) time.Duration {
	waits := suspended(job) || meta.IsStatusConditionTrue(job.Status.Conditions, trainerv1alpha1.TrainJobSuspended)
	if job.Spec.ActiveDeadlineSeconds == 0 || waits || job.Ended() {
		return 0
	}
	now := r.Clock.Now()
	if left := plan.Deadline(job).Sub(now); left >= 0 {
		return max(left, time.Second)
	}
	meta.SetStatusCondition(&job.Status.Conditions, metav1.Condition{
		Type:               trainerv1alpha1.TrainJobFailed,
		Status:             metav1.ConditionTrue,
		Reason:             trainerv1alpha1.ReasonDeadlineExceeded,
		Message:            "TrainJob exceeded its active deadline",
		LastTransitionTime: metav1.NewTime(now),
	})
	return 0
}

// overdue reports whether the job failed because of its deadline.
func overdue(job *trainerv1alpha1.TrainJob) bool {
	failed := meta.FindStatusCondition(job.Status.Conditions, trainerv1alpha1.TrainJobFailed)
	return failed != nil && failed.Status == metav1.ConditionTrue &&
		failed.Reason == trainerv1alpha1.ReasonDeadlineExceeded
}
