package trainjob

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// copyStatus copies the JobSet's status. A job without a JobSet retains its own: an ended job stays ended when its
// JobSet is deleted, and a JobSet that was just applied has no status yet.
//
// Only Suspended, Complete and Failed may appear: clients read a job without conditions as running.
func copyStatus(job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet) {
	if jobSet == nil {
		return
	}
	takeOver(job, jobSet, jobsetv1alpha2.JobSetCompleted, trainerv1alpha1.TrainJobComplete)
	takeOver(job, jobSet, jobsetv1alpha2.JobSetFailed, trainerv1alpha1.TrainJobFailed)
	var jobs []trainerv1alpha1.JobStatus
	for _, replicated := range jobSet.Status.ReplicatedJobsStatus {
		jobs = append(jobs, trainerv1alpha1.JobStatus{
			Name:      replicated.Name,
			Ready:     new(replicated.Ready),
			Succeeded: new(replicated.Succeeded),
			Failed:    new(replicated.Failed),
			Active:    new(replicated.Active),
			Suspended: new(replicated.Suspended),
		})
	}
	job.Status.JobsStatus = jobs
}

// takeOver copies a final condition of the JobSet. A job that has ended already, by its deadline for example, retains
// its condition.
func takeOver(
	job *trainerv1alpha1.TrainJob, jobSet *jobsetv1alpha2.JobSet, from jobsetv1alpha2.JobSetConditionType, to string,
) {
	condition := meta.FindStatusCondition(jobSet.Status.Conditions, string(from))
	if condition == nil || condition.Status != metav1.ConditionTrue || job.Ended() {
		return
	}
	meta.SetStatusCondition(&job.Status.Conditions, metav1.Condition{
		Type:               to,
		Status:             metav1.ConditionTrue,
		Reason:             condition.Reason,
		Message:            condition.Message,
		LastTransitionTime: condition.LastTransitionTime,
	})
}

// endOf returns the end of the job; zero for one that has not ended.
func endOf(job *trainerv1alpha1.TrainJob) time.Time {
	if end := job.Ending(); end != nil {
		return end.LastTransitionTime.Time
	}
	return time.Time{}
}
