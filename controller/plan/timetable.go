package plan

import (
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/foresight"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	// MetricCheckpoint is the metric with the time of a trainer's last checkpoint: seconds since 1970.
	MetricCheckpoint = "checkpoint_unix_seconds"
	// clocksApart is the time by which a trainer's clock may be ahead of itself between two readings of one report, and
	// of the controller's.
	clocksApart = time.Minute
	// Reported ends move with every report. One that moves by less than a twentieth of the remaining time, or by less
	// than half a minute, is the same: no plan is finer, and each change is a write.
	sameShare = 20
	sameEnd   = 30 * time.Second
	// longestDeadline is the longest time that a Duration holds, in seconds: 292 years. The API accepts more.
	longestDeadline = int64(math.MaxInt64 / time.Second)
)

// timetable returns a PodGroup's annotations about a job's time. The scheduler orders its queue by it, fills gaps
// before expected ends, and weighs the loss of a preemption.
func timetable(job *trainerv1alpha1.TrainJob, reported, now time.Time) map[string]string {
	times := map[string]string{topology.AnnotationQueuedAt: instant(queuedAt(job))}
	if end := expectedEnd(job, reported); !end.IsZero() {
		times[topology.AnnotationExpectedEnd] = instant(end)
	}
	if saved := lastCheckpoint(job, now); !saved.IsZero() {
		times[topology.AnnotationLastCheckpoint] = instant(saved)
	}
	return times
}

// queuedAt is since when a job waits: since its creation, or since its owner resumed it, as admission has written.
func queuedAt(job *trainerv1alpha1.TrainJob) time.Time {
	created := job.CreationTimestamp.Time
	resumed, err := time.Parse(time.RFC3339, job.Annotations[topology.AnnotationJobQueuedAt])
	if err != nil || resumed.Before(created) {
		return created
	}
	return resumed
}

// ActiveSince returns the start of the clock of activeDeadlineSeconds: the job's creation, and again each resumption.
func ActiveSince(job *trainerv1alpha1.TrainJob) time.Time {
	resumed := meta.FindStatusCondition(job.Status.Conditions, trainerv1alpha1.TrainJobSuspended)
	if resumed != nil && resumed.Status == metav1.ConditionFalse {
		return resumed.LastTransitionTime.Time
	}
	return job.CreationTimestamp.Time
}

// Deadline returns the end of a job's activeDeadlineSeconds if its clock is not stopped meanwhile; zero without one.
func Deadline(job *trainerv1alpha1.TrainJob) time.Time {
	seconds := job.Spec.ActiveDeadlineSeconds
	if seconds == 0 {
		return time.Time{}
	}
	return ActiveSince(job).Add(time.Duration(min(seconds, longestDeadline)) * time.Second)
}

// expectedEnd is the earlier of the job's deadline and of the end that its trainer's reports lead to expect; zero
// without either.
func expectedEnd(job *trainerv1alpha1.TrainJob, reported time.Time) time.Time {
	deadline := Deadline(job)
	if deadline.IsZero() || !reported.IsZero() && reported.Before(deadline) {
		return reported
	}
	return deadline
}

// lastCheckpoint returns the time of the trainer's last checkpoint from its job's status; zero if it reports none, or
// an impossible one: more than clocksApart after the report itself, or after now by the controller's clock. Zero for
// now is no bound.
func lastCheckpoint(job *trainerv1alpha1.TrainJob, now time.Time) time.Time {
	report := job.Status.TrainerStatus
	saved := reportedCheckpoint(report)
	switch {
	case saved.IsZero(), saved.After(report.LastUpdatedTime.Add(clocksApart)):
		return time.Time{}
	case now.IsZero():
		return saved
	case saved.After(now.Add(clocksApart)):
		return time.Time{}
	case saved.After(now):
		// The trainer's clock is a little ahead. The beginning of the minute does not move, or each look would write
		// the PodGroup again.
		saved = now.Truncate(time.Minute)
	}
	if start := ActiveSince(job); saved.Before(start) {
		return start // it continues from a checkpoint of an earlier run: a preemption loses the work since its start
	}
	return saved
}

// reportedCheckpoint returns the instant of a report's checkpoint metric; zero if it has none, or one that is no
// instant.
func reportedCheckpoint(report *trainerv1alpha1.TrainerStatus) time.Time {
	if report == nil {
		return time.Time{}
	}
	for _, metric := range report.Metrics {
		if metric.Name != MetricCheckpoint {
			continue
		}
		seconds, err := strconv.ParseFloat(metric.Value, 64)
		if err != nil || math.IsNaN(seconds) || seconds <= 0 || seconds > math.MaxInt32*2 {
			return time.Time{}
		}
		return time.Unix(int64(seconds), 0)
	}
	return time.Time{}
}

// SameEnd reports whether an expected end is as good as another: reported is the time of the newer estimate.
func SameEnd(have, want string, reported time.Time) bool {
	before, err := time.Parse(time.RFC3339, have)
	if err != nil {
		return have == want
	}
	after, err := time.Parse(time.RFC3339, want)
	if err != nil {
		return have == want
	}
	return after.Sub(before).Abs() <= max(sameEnd, after.Sub(reported)/sameShare)
}

// SameTimetable reports whether a job's PodGroup has the same timetable with either report: the same last checkpoint,
// and ends that are the same by now. No decision differs by the newer one.
func SameTimetable(job *trainerv1alpha1.TrainJob, have, want *trainerv1alpha1.TrainerStatus, now time.Time) bool {
	reported := *job
	reported.Status.TrainerStatus = have
	before := timetable(&reported, said(&reported, now), now)
	reported.Status.TrainerStatus = want
	after := timetable(&reported, said(&reported, now), now)
	const end, saved = topology.AnnotationExpectedEnd, topology.AnnotationLastCheckpoint
	return before[saved] == after[saved] && SameEnd(before[end], after[end], now)
}

// said returns the end of a job by its trainer; zero if it reports none.
func said(job *trainerv1alpha1.TrainJob, now time.Time) time.Time {
	report, _ := foresight.Reported(job.Status.TrainerStatus, ActiveSince(job), now)
	return report.End
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
