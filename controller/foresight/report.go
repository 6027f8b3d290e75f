package foresight

import (
	"time"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// Reported returns a trainer's last report of its end, and false if there was none in the run that began at an instant.
// A report from the future is one of now.
func Reported(status *trainerv1alpha1.TrainerStatus, began, now time.Time) (Report, bool) {
	if status == nil || status.EstimatedRemainingSeconds == nil || status.LastUpdatedTime.Time.Before(began) {
		return Report{}, false
	}
	at := status.LastUpdatedTime.Time
	if at.After(now) {
		at = now
	}
	return Report{At: at, End: at.Add(time.Duration(*status.EstimatedRemainingSeconds) * time.Second)}, true
}
