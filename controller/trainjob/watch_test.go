package trainjob_test

import (
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lockstep-project/lockstep/controller/trainjob"
)

// A job that fails is tried again soon, and never waits for more than a minute.
func TestRateLimiter_RetriesWithinAMinute(t *testing.T) {
	limiter, job := trainjob.NewRateLimiter(), reconcile.Request{}
	if first := limiter.When(job); first > 10*time.Millisecond {
		t.Errorf("the first retry comes after %s", first)
	}
	for range 1000 {
		if next := limiter.When(job); next > time.Minute {
			t.Fatalf("a retry comes after %s", next)
		}
	}
}
