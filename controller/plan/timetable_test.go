package plan_test

import (
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
	resumed := []metav1.Condition{{
		Type: "Suspended", Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(clock(t, "12:00:00")),
	}}
	for name, c := range map[string]struct {
		deadline int64
		status   trainerv1alpha1.TrainJobStatus
		end      string
		saved    string
	}{
		"neither deadline nor report": {},
		"deadline from creation":      {deadline: 3600, end: "11:00:00"},
		"deadline from resumption":    {deadline: 3600, status: trainerv1alpha1.TrainJobStatus{Conditions: resumed}, end: "13:00:00"},
		"report":                      {status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "10:30:00"), 60)}, end: "10:31:00"},
		"report before the deadline":  {deadline: 3600, status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "10:30:00"), 60)}, end: "10:31:00"},
		"report that misses the deadline": {
			deadline: 3600, status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "10:30:00"), 7200)}, end: "11:00:00",
		},
		"report of the run before the resumption": {
			deadline: 3600, end: "13:00:00",
			status: trainerv1alpha1.TrainJobStatus{Conditions: resumed, TrainerStatus: report(clock(t, "10:30:00"), 60)},
		},
		"checkpoint, to the second": {
			status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "10:30:00"), 60, saved("1795256700.25"))},
			end:    "10:31:00", saved: "10:25:00",
		},
		"checkpoint that nobody can read": {
			status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "10:30:00"), 60, saved("yesterday"))}, end: "10:31:00",
		},
		"checkpoint that is none": {
			status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "10:30:00"), 60, saved("NaN"))}, end: "10:31:00",
		},
		"checkpoint in the future": {
			status: trainerv1alpha1.TrainJobStatus{TrainerStatus: report(clock(t, "10:30:00"), 60, saved("1795260700"))}, end: "10:31:00",
		},
	} {
		t.Run(name, func(t *testing.T) {
			job, rt, options := readCase(t, "testdata/torch-gang")
			job.Spec.ActiveDeadlineSeconds, job.Status = c.deadline, c.status
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

func TestEndsThatAreTheSame(t *testing.T) {
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
