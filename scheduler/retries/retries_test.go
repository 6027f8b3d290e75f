package retries_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/retries"
)

func TestLimiter_FailuresOfOthersDelayNone(t *testing.T) {
	l := retries.Limiter()
	for i := range 10_000 {
		l.When(fmt.Sprint("tenant/", i))
	}
	if wait := l.When("other/gang"); wait > time.Second {
		t.Errorf("the first attempt waits %s", wait)
	}
	for range 30 {
		l.When("other/gang")
	}
	if wait := l.When("other/gang"); wait < time.Minute || wait > 10*time.Minute {
		t.Errorf("an item that keeps failing waits %s", wait)
	}
}
