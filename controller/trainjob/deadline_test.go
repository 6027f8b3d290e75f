package trainjob_test

import (
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// A deadline of more seconds than a Duration holds is one of 292 years. The API accepts it: users write such numbers
// for "none".
func TestDeadline_LongerThanADuration(t *testing.T) {
	for _, seconds := range []int64{9_223_372_037, 1e12, math.MaxInt64} {
		w := newWorld(t, gang(), torch(), trainJob(deadline(seconds)))
		w.settle()
		w.clock.SetTime(created().Add(time.Hour))
		w.settle()
		failed := meta.FindStatusCondition(w.job().Status.Conditions, trainerv1alpha1.TrainJobFailed)
		if failed != nil {
			t.Errorf("a job with a deadline of %d s failed within an hour: %s", seconds, failed.Message)
		}
	}
}
