package kueuecheck

import (
	"fmt"
	"time"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// The states of an AdmissionCheck of a Workload.
const (
	Pending = "Pending"
	Ready   = "Ready"
	Retry   = "Retry"
)

// Check is the state of an AdmissionCheck of a Workload.
type Check struct {
	State string
	// Since is the time of the last change of the state.
	Since time.Time
}

// Verdict is the state that a check is to have. It names no time to retry after: Kueue 0.19 evicts a Workload only at
// that time, and the job would hold its quota until then. Without one, Kueue evicts it at once, and puts it behind the
// jobs that wait already.
type Verdict struct {
	State, Message string
}

// Judge returns the next state of a check of a Workload that has its quota, or the requeue delay; both are zero if
// nothing is due. A check is Ready at once, because Lockstep looks for nodes only for pods, and these exist once Kueue
// admits the job. job is the TrainJob of the Workload, nil for one that is not Lockstep's; after is the time that a job
// may wait for nodes.
func Judge(check Check, job *trainerv1alpha1.TrainJob, after time.Duration, now time.Time) (Verdict, time.Duration) {
	switch check.State {
	case Pending:
		if job == nil {
			return Verdict{State: Ready, Message: "it is not a TrainJob of Lockstep's"}, 0
		}
		return Verdict{State: Ready, Message: fmt.Sprintf("Lockstep may look for nodes for %s", after)}, 0
	case Ready:
	default:
		return Verdict{}, 0 // Kueue evicts the Workload, and resets the check
	}
	if job == nil || !waits(job) {
		return Verdict{}, 0
	}
	since := job.Status.Scheduling.WaitingSince.Time
	if since.Before(check.Since) {
		since = check.Since // it waited for an earlier admission
	}
	if left := after - now.Sub(since); left > 0 {
		return Verdict{}, left
	}
	return Verdict{
		State:   Retry,
		Message: fmt.Sprintf("Lockstep found no nodes for %s: %s", after, job.Status.Scheduling.Reason),
	}, 0
}

// waits reports whether a job that may run waits for nodes.
func waits(job *trainerv1alpha1.TrainJob) bool {
	suspended := job.Spec.Suspend != nil && *job.Spec.Suspend
	scheduling := job.Status.Scheduling
	return !suspended && scheduling != nil && scheduling.Phase == trainerv1alpha1.PhaseWaiting &&
		scheduling.WaitingSince != nil
}
