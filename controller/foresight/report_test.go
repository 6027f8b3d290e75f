package foresight_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/foresight"
)

// A report is about the present run, and was made by now.
func TestReported(t *testing.T) {
	t.Parallel()
	began, now := start(), start().Add(time.Hour)
	status := func(at time.Time, left *int32) *trainerv1alpha1.TrainerStatus {
		return &trainerv1alpha1.TrainerStatus{LastUpdatedTime: metav1.NewTime(at), EstimatedRemainingSeconds: left}
	}
	minute := new(int32(60))
	for name, c := range map[string]struct {
		status *trainerv1alpha1.TrainerStatus
		at     time.Time
	}{
		"nothing was reported":       {status: nil},
		"nothing of an end":          {status: status(now, nil)},
		"of the run before":          {status: status(began.Add(-time.Second), minute)},
		"of this run":                {status: status(began.Add(time.Minute), minute), at: began.Add(time.Minute)},
		"of the end of the calendar": {status: status(time.Date(9998, 1, 1, 0, 0, 0, 0, time.UTC), minute), at: now},
	} {
		got, ok := foresight.Reported(c.status, began, now)
		want := foresight.Report{At: c.at, End: c.at.Add(time.Minute)}
		if ok != !c.at.IsZero() || ok && got != want {
			t.Errorf("%s: %+v, %t, want %+v", name, got, ok, want)
		}
	}
}
