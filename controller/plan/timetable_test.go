package plan_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// clock is an instant of the day on which the tests' jobs run.
func clock(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, "2026-11-21T"+text+"Z")
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestTimetable(t *testing.T) {
	const queued = "lockstep.dev/queued-at"
	report := func(at time.Time, left int32, metrics ...trainerv1alpha1.Metric) *trainerv1alpha1.TrainerStatus {
		return &trainerv1alpha1.TrainerStatus{
			LastUpdatedTime: metav1.NewTime(at), EstimatedRemainingSeconds: &left, Metrics: metrics,
		}
	}
	saved := func(value string) trainerv1alpha1.Metric {
		return trainerv1alpha1.Metric{Name: "checkpoint_unix_seconds", Value: value}
	}
	resumedAt := func(text string) []metav1.Condition {
		return []metav1.Condition{{
			Type: "Suspended", Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(clock(t, text)),
		}}
	}
	for name, c := range map[string]struct {
		deadline int64
		status   trainerv1alpha1.TrainJobStatus
		reported time.Time
		end      string
		saved    string
	}{
		"neither deadline nor report":     {},
		"deadline from creation":          {deadline: 3600, end: "11:00:00"},
		"deadline from resumption":        {deadline: 3600, status: trainerv1alpha1.TrainJobStatus{Conditions: resumedAt("12:00:00")}, end: "13:00:00"},
		"deadline longer than a Duration": {deadline: 9_223_372_037, reported: clock(t, "10:31:00"), end: "10:31:00"},
		"report":                          {reported: clock(t, "10:31:00"), end: "10:31:00"},
		"report before the deadline":      {deadline: 3600, reported: clock(t, "10:31:00"), end: "10:31:00"},
		"report that misses the deadline": {deadline: 3600, reported: clock(t, "12:30:00"), end: "11:00:00"},
		"checkpoint, to the second": {
			status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "10:30:00"), 60, saved("1795256700.25"))},
			saved:  "10:25:00",
		},
		"checkpoint that nobody can read": {
			status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "10:30:00"), 60, saved("yesterday"))},
		},
		"checkpoint that is none": {
			status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "10:30:00"), 60, saved("NaN"))},
		},
		"checkpoint in the future": {
			status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "10:30:00"), 60, saved("1795260700"))},
		},
		"checkpoint of a clock that is half a minute ahead": {
			status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "10:30:40"), 60, saved("1795257040"))},
			saved:  "10:30:00",
		},
		"checkpoint of before the job": {
			status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "10:30:00"), 60, saved("1795200000"))},
			saved:  "10:00:00",
		},
		"checkpoint of before a resumption": {
			status: trainerv1alpha1.TrainJobStatus{
				Conditions: resumedAt("10:26:00"), TrainerStatus: report(clock(t, "10:30:00"), 60, saved("1795256700")),
			},
			saved: "10:26:00",
		},
		"checkpoint in the future of a clock that is ahead": {
			status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "23:30:00"), 60, saved("1795260700"))},
		},
	} {
		t.Run(name, func(t *testing.T) {
			job, rt, options := readCase(t, "torch-gang")
			job.Spec.ActiveDeadlineSeconds, job.Status = c.deadline, c.status
			options.ReportedEnd, options.Now = c.reported, clock(t, "10:30:10")
			planned, err := plan.New(job, rt, options)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{queued: "2026-11-21T10:00:00Z", "lockstep.dev/required-topology": "rack"}
			if c.end != "" {
				want["lockstep.dev/expected-end"] = "2026-11-21T" + c.end + "Z"
			}
			if c.saved != "" {
				want["lockstep.dev/last-checkpoint"] = "2026-11-21T" + c.saved + "Z"
			}
			if diff := cmp.Diff(want, planned.PodGroups[0].Annotations); diff != "" {
				t.Errorf("annotations (-want +got):\n%s", diff)
			}
		})
	}
}

// The end of a deadline that no Duration holds is in the far future, and not before the job's creation.
func TestDeadline_LongerThanADuration(t *testing.T) {
	job := &trainerv1alpha1.TrainJob{}
	job.CreationTimestamp = metav1.NewTime(clock(t, "10:00:00"))
	for seconds, want := range map[int64]int{
		3600: 2026, 9_223_372_036: 2319, 9_223_372_037: 2319, math.MaxInt64: 2319,
	} {
		job.Spec.ActiveDeadlineSeconds = seconds
		if got := plan.Deadline(job).Year(); got != want {
			t.Errorf("%d s end in the year %d, want %d", seconds, got, want)
		}
	}
}

func TestSameEnd_Tolerance(t *testing.T) {
	now := clock(t, "10:00:00")
	for _, c := range []struct {
		have, want string
		same       bool
	}{
		{"2026-11-21T10:10:00Z", "2026-11-21T10:10:29Z", true},
		{"2026-11-21T10:10:00Z", "2026-11-21T10:10:40Z", false},
		{"2026-11-21T20:00:00Z", "2026-11-21T20:29:00Z", true},
		{"2026-11-21T20:00:00Z", "2026-11-21T20:45:00Z", false},
		{"", "2026-11-21T20:45:00Z", false},
		{"2026-11-21T20:45:00Z", "", false},
	} {
		if got := plan.SameEnd(c.have, c.want, now); got != c.same {
			t.Errorf("%q and %q, thought of at ten, are the same: %t", c.have, c.want, got)
		}
	}
}

// A job waits since its creation, or since admission wrote that its owner resumed it; nothing makes it older than it
// is.
func TestQueuedAt(t *testing.T) {
	for name, c := range map[string]struct{ written, want string }{
		"since its creation":     {"", "2026-11-21T10:00:00Z"},
		"since its resumption":   {"2026-11-21T12:00:00Z", "2026-11-21T12:00:00Z"},
		"not before it was made": {"2026-11-20T12:00:00Z", "2026-11-21T10:00:00Z"},
		"whatever is written":    {"yesterday", "2026-11-21T10:00:00Z"},
	} {
		job, rt, options := readCase(t, "torch-gang")
		if c.written != "" {
			job.Annotations["state.lockstep.dev/queued-at"] = c.written
		}
		planned, err := plan.New(job, rt, options)
		if err != nil {
			t.Fatal(err)
		}
		if got := planned.PodGroups[0].Annotations["lockstep.dev/queued-at"]; got != c.want {
			t.Errorf("%s: it waits since %s, want %s", name, got, c.want)
		}
	}
}

// A job's deadline can be earlier than its trainer's estimate: then the reported end does not matter.
func TestSameTimetable(t *testing.T) {
	now := clock(t, "10:30:00")
	report := func(left int32, saved string) *trainerv1alpha1.TrainerStatus {
		status := &trainerv1alpha1.TrainerStatus{LastUpdatedTime: metav1.NewTime(now), EstimatedRemainingSeconds: &left}
		if saved != "" {
			status.Metrics = []trainerv1alpha1.Metric{{Name: "checkpoint_unix_seconds", Value: saved}}
		}
		return status
	}
	for name, c := range map[string]struct {
		deadline   int64
		have, want *trainerv1alpha1.TrainerStatus
		same       bool
	}{
		"no report":                  {same: true},
		"the first estimate":         {want: report(3600, "")},
		"an estimate that is gone":   {have: report(3600, "")},
		"a small move":               {have: report(3600, ""), want: report(3700, ""), same: true},
		"a large move":               {have: report(3600, ""), want: report(4000, "")},
		"beyond the deadline":        {deadline: 3600, have: report(3600, ""), want: report(9000, ""), same: true},
		"a checkpoint":               {have: report(3600, ""), want: report(3600, "1795256700")},
		"a newer checkpoint":         {have: report(3600, "1795256700"), want: report(3600, "1795256760")},
		"a fraction of a second":     {have: report(3600, "1795256700"), want: report(3600, "1795256700.5"), same: true},
		"a checkpoint in the future": {have: report(3600, ""), want: report(3600, "1795299999"), same: true},
	} {
		t.Run(name, func(t *testing.T) {
			job := &trainerv1alpha1.TrainJob{ObjectMeta: metav1.ObjectMeta{
				CreationTimestamp: metav1.NewTime(clock(t, "10:00:00")),
			}}
			job.Spec.ActiveDeadlineSeconds = c.deadline
			if got := plan.SameTimetable(job, c.have, c.want, now); got != c.same {
				t.Errorf("the same: %t, want %t", got, c.same)
			}
			if job.Status.TrainerStatus != nil {
				t.Error("the job was changed")
			}
		})
	}
}

// Keys that the controller writes on TrainJobs have another prefix than users' keys: an earlier release refuses a
// TrainJob with a key of that prefix that it does not know.
func TestAnnotations_EarlierReleasesTakeWhatIsWrittenOnJobs(t *testing.T) {
	for _, line := range plan.Annotations() {
		if line.Controller && slices.Contains(line.On, "TrainJob") && strings.HasPrefix(line.Key, "lockstep.dev/") {
			t.Errorf("an earlier release would refuse TrainJobs with %s", line.Key)
		}
	}
}
