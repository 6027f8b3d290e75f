package statusserver

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

const (
	// Period is the longest time for which a report that changes no decision waits before it is written, the newest one
	// only.
	Period = 30 * time.Second
	// Spacing is the time between two writes of one job, unless its training is complete. An estimate that swings with
	// every report is written no more often than Kubeflow's SDK reports.
	Spacing = 5 * time.Second
	// clocksApart bounds how far ahead a trainer's clock counts: a report from the future holds back others for so long
	// at most.
	clocksApart = time.Minute
	// complete is the progress of a training that is done, in per cent.
	complete = 100
)

// report is a pod's report about its job.
type report struct {
	status *trainerv1alpha1.TrainerStatus
	by     member
	// at is the time of its arrival.
	at time.Time
}

// standing is the report that a TrainJob shows.
type standing struct {
	// status is nil if there is none.
	status *trainerv1alpha1.TrainerStatus
	// pod reported it; empty if it was written by another replica or before this one started.
	pod types.UID
	// since is the earliest time at which it may have been written.
	since time.Time
	// heard is the latest time of its arrival: of a report that another replica took, when this one first saw it.
	heard time.Time
}

// standingSince is the report as it stands once it has been written.
func (r report) standingSince(written time.Time) standing {
	return standing{status: r.status, pod: r.by.uid, since: written, heard: r.at}
}

// supersededBy reports whether r may replace the standing report. Trainers' clocks decide: a report that is older than
// the standing one arrived late, or at another replica. A pod that was created after the standing report need not have
// the same clock.
func (s standing) supersededBy(r report) bool {
	return s.status == nil || !r.status.LastUpdatedTime.Time.Before(s.instant()) || s.precedes(r.by)
}

// precedes reports whether the standing report is from before a pod was created.
func (s standing) precedes(pod member) bool {
	return s.pod != pod.uid && s.instant().Before(pod.created)
}

// instant is the time of the standing report by its trainer's clock.
func (s standing) instant() time.Time {
	said, latest := s.status.LastUpdatedTime.Time, s.heard.Add(clocksApart)
	if said.After(latest) {
		return latest
	}
	return said
}

// due returns the time at which a report has to be written over the standing one: after the period, if it changes no
// decision. The time is past if it changes a decision or a user waits for it: the report that is overdue for longest is
// written first.
func (s standing) due(job *trainerv1alpha1.TrainJob, r report, now time.Time, period time.Duration) time.Time {
	switch {
	case s.status == nil:
		return time.Time{}
	case isComplete(s.status) != isComplete(r.status):
		return s.since
	case s.precedes(r.by), job.Ended(), !slices.Equal(metricNames(s.status), metricNames(r.status)),
		!plan.SameTimetable(job, s.status, r.status, now):
		return s.since.Add(Spacing)
	default:
		return s.since.Add(period)
	}
}

// later is the later of two instants.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func isComplete(status *trainerv1alpha1.TrainerStatus) bool {
	return status.ProgressPercentage != nil && *status.ProgressPercentage >= complete
}

// metricNames are the names of a report's metrics, in order.
func metricNames(status *trainerv1alpha1.TrainerStatus) []string {
	names := make([]string, len(status.Metrics))
	for i, metric := range status.Metrics {
		names[i] = metric.Name
	}
	slices.Sort(names)
	return names
}

// same reports whether two reports are equal. Times are compared to the second, as they are stored.
func same(a, b *trainerv1alpha1.TrainerStatus) bool {
	if a == nil || b == nil {
		return a == b
	}
	return ptr.Equal(a.ProgressPercentage, b.ProgressPercentage) &&
		ptr.Equal(a.EstimatedRemainingSeconds, b.EstimatedRemainingSeconds) &&
		a.LastUpdatedTime.Unix() == b.LastUpdatedTime.Unix() && slices.Equal(a.Metrics, b.Metrics)
}
