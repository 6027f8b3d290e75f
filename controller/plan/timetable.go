package plan

import (
	"math"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology"
)

const (
	// MetricCheckpoint is the metric by which a trainer says when it last saved what it has learned: seconds since 1970.
	MetricCheckpoint = "checkpoint_unix_seconds"
	// clocksApart is how much a trainer's clock may be ahead of itself between two readings of one report.
	clocksApart = time.Minute
	// Reported ends move with every report. One that moves by less than a twentieth of what is left, or by less than half a
	// minute, is the same: nobody plans finer, and each change is a write.
	sameShare = 20
	sameEnd   = 30 * time.Second
)

// timetable is what a PodGroup says about a job's time, by annotation. The scheduler orders its queue by it, fills gaps before
// expected ends, and weighs what a preemption would lose.
func timetable(job *trainerv1alpha1.TrainJob) map[string]string {
	times := map[string]string{topology.AnnotationQueuedAt: instant(job.CreationTimestamp.Time)}
	if end := expectedEnd(job); !end.IsZero() {
		times[topology.AnnotationExpectedEnd] = instant(end)
	}
	if saved := lastCheckpoint(job.Status.TrainerStatus); !saved.IsZero() {
		times[topology.AnnotationLastCheckpoint] = instant(saved)
	}
	return times
}

// ActiveSince is when the clock of activeDeadlineSeconds started: at the job's creation, and again at each resumption.
func ActiveSince(job *trainerv1alpha1.TrainJob) time.Time {
	resumed := meta.FindStatusCondition(job.Status.Conditions, trainerv1alpha1.TrainJobSuspended)
	if resumed != nil && resumed.Status == metav1.ConditionFalse {
		return resumed.LastTransitionTime.Time
	}
	return job.CreationTimestamp.Time
}

// expectedEnd is the earlier of the job's deadline and of the end that its trainer expects; zero without either. What was
// reported before the job was resumed is about a run that is no more.
func expectedEnd(job *trainerv1alpha1.TrainJob) time.Time {
	var end time.Time
	if job.Spec.ActiveDeadlineSeconds > 0 {
		end = ActiveSince(job).Add(time.Duration(job.Spec.ActiveDeadlineSeconds) * time.Second)
	}
	report := job.Status.TrainerStatus
	if report == nil || report.EstimatedRemainingSeconds == nil ||
		report.LastUpdatedTime.Time.Before(ActiveSince(job)) {
		return end
	}
	expected := report.LastUpdatedTime.Add(time.Duration(*report.EstimatedRemainingSeconds) * time.Second)
	if end.IsZero() || expected.Before(end) {
		return expected
	}
	return end
}

// lastCheckpoint is when the trainer last saved its work, as it says itself; zero if it does not, or if what it says cannot be:
// an instant after the report itself.
func lastCheckpoint(report *trainerv1alpha1.TrainerStatus) time.Time {
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
		saved := time.Unix(int64(seconds), 0)
		if saved.After(report.LastUpdatedTime.Add(clocksApart)) {
			return time.Time{}
		}
		return saved
	}
	return time.Time{}
}

// SameEnd reports whether an expected end is as good as another: reported is when the newer one was thought of.
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

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
