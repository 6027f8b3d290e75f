package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Ended reports whether the job has ended, which is final. A job that failed is not run again, whatever the state of
// its JobSet.
func (j *TrainJob) Ended() bool { return j.Ending() != nil }

// Ending returns the final condition of the job, Complete or Failed; nil for a job that is not over.
func (j *TrainJob) Ending() *metav1.Condition {
	for _, kind := range []string{TrainJobComplete, TrainJobFailed} {
		condition := meta.FindStatusCondition(j.Status.Conditions, kind)
		if condition != nil && condition.Status == metav1.ConditionTrue {
			return condition
		}
	}
	return nil
}
