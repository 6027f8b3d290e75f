package trainjob_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// A deadline of more seconds than a Duration holds is one of 292 years. The API accepts it: users write such numbers
// for "none".
func TestDeadline_LongerThanADuration(t *testing.T) {
	for _, seconds := range []int64{9_223_372_037, 1e12, math.MaxInt64} {
		w := newFixture(t, gang(), torch(), trainJob(deadline(seconds)))
		w.settle()
		w.clock.SetTime(created().Add(time.Hour))
		w.settle()
		failed := meta.FindStatusCondition(w.job().Status.Conditions, trainerv1alpha1.TrainJobFailed)
		if failed != nil {
			t.Errorf("a job with a deadline of %d s failed within an hour: %s", seconds, failed.Message)
		}
	}
}

func TestDeadline_FailsTheJob(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(deadline(60)))
	w.clock.SetTime(created().Add(20 * time.Second))
	if got := w.settle().RequeueAfter; got != 40*time.Second {
		t.Errorf("comes back after %v, want 40s", got)
	}
	w.clock.SetTime(created().Add(61 * time.Second))
	w.settle()
	want := []string{"patch TrainJob status", "delete JobSet", "patch PodGroup"}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	failed := metav1.Condition{
		Type: "Failed", Status: "True", Reason: "DeadlineExceeded", Message: "TrainJob exceeded its active deadline",
		LastTransitionTime: metav1.NewTime(created().Add(61 * time.Second)),
	}
	wantConditions(t, w, failed)
	w.change(suspend(true))
	w.settle()
	w.change(suspend(false))
	w.settle()
	if w.jobSet() != nil {
		t.Error("a job that missed its deadline was revived")
	}
}

func TestDeadline_RestartsOnResume(t *testing.T) {
	w := newFixture(t, plan.Options{}, torch(), trainJob(deadline(60), suspend(true)))
	w.clock.SetTime(created().Add(time.Hour))
	if got := w.settle().RequeueAfter; got != 0 {
		t.Errorf("a suspended job comes back after %v, want never", got)
	}
	w.clock.SetTime(created().Add(2 * time.Hour))
	w.change(suspend(false))
	if got := w.settle().RequeueAfter; got != time.Minute {
		t.Errorf("a resumed job comes back after %v, want 1m", got)
	}
}
