package kueuecheck_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/kueuecheck"
)

func TestJudge(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	waiting := func(since time.Duration) *trainerv1alpha1.TrainJob {
		at := metav1.NewTime(ago(since))
		job := &trainerv1alpha1.TrainJob{}
		job.Status.Scheduling = &trainerv1alpha1.SchedulingStatus{
			Phase: trainerv1alpha1.PhaseWaiting, WaitingSince: &at, Reason: "rack-1 is full",
		}
		return job
	}
	in := func(phase trainerv1alpha1.TrainJobPhase) *trainerv1alpha1.TrainJob {
		job := waiting(time.Hour)
		job.Status.Scheduling.Phase = phase
		return job
	}
	suspended := waiting(time.Hour)
	suspended.Spec.Suspend = new(true)
	for name, c := range map[string]struct {
		check kueuecheck.Check
		job   *trainerv1alpha1.TrainJob
		state string
		again time.Duration
	}{
		"a new one":              {kueuecheck.Check{State: "Pending"}, waiting(time.Hour), "Ready", 0},
		"of another kind of job": {kueuecheck.Check{State: "Pending"}, nil, "Ready", 0},
		"another kind that waits": {
			kueuecheck.Check{State: "Ready", Since: ago(time.Hour)}, nil, "", 0,
		},
		"it has waited long enough": {
			kueuecheck.Check{State: "Ready", Since: ago(3 * time.Minute)}, waiting(2 * time.Minute), "Retry", 0,
		},
		"not long enough": {
			kueuecheck.Check{State: "Ready", Since: ago(time.Hour)}, waiting(90 * time.Second), "", 30 * time.Second,
		},
		"its wait for an earlier admission does not count": {
			kueuecheck.Check{State: "Ready", Since: ago(time.Minute)}, waiting(time.Hour), "", time.Minute,
		},
		"it starts":     {kueuecheck.Check{State: "Ready", Since: ago(time.Hour)}, in(trainerv1alpha1.PhaseStarting), "", 0},
		"it runs":       {kueuecheck.Check{State: "Ready", Since: ago(time.Hour)}, in(trainerv1alpha1.PhaseRunning), "", 0},
		"it is blocked": {kueuecheck.Check{State: "Ready", Since: ago(time.Hour)}, in(trainerv1alpha1.PhaseBlocked), "", 0},
		"suspended":     {kueuecheck.Check{State: "Ready", Since: ago(time.Hour)}, suspended, "", 0},
		"without status": {
			kueuecheck.Check{State: "Ready", Since: ago(time.Hour)}, &trainerv1alpha1.TrainJob{}, "", 0,
		},
		"Kueue evicts it":  {kueuecheck.Check{State: "Retry", Since: ago(time.Hour)}, waiting(time.Hour), "", 0},
		"it was rejected":  {kueuecheck.Check{State: "Rejected", Since: ago(time.Hour)}, waiting(time.Hour), "", 0},
		"a state of later": {kueuecheck.Check{State: "Else", Since: ago(time.Hour)}, waiting(time.Hour), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			got, again := kueuecheck.Judge(c.check, c.job, 2*time.Minute, now)
			if got.State != c.state || again != c.again {
				t.Errorf("%+v, again in %s; want %s, again in %s", got, again, c.state, c.again)
			}
			if c.state == "Retry" && !strings.Contains(got.Message, "rack-1 is full") {
				t.Errorf("the message %q does not say why", got.Message)
			}
		})
	}
}
