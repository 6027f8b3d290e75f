package ratelimit_test

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/controller/ratelimit"
)

// Each caller has its own bucket, which fills with time.
func TestBuckets_Take(t *testing.T) {
	now := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	buckets := ratelimit.New(ratelimit.Rate{PerSecond: 0.5, Burst: 2}, now)
	take := func(key string) (taken int) {
		for range 5 {
			if buckets.Take(key) {
				taken++
			}
		}
		return taken
	}
	for _, key := range []string{"a", "b"} {
		if taken := take(key); taken != 2 {
			t.Errorf("%s took %d, want 2", key, taken)
		}
	}
	if wait := buckets.Wait(); wait != 2*time.Second {
		t.Errorf("the wait is %v, want 2 s", wait)
	}
	now.SetTime(now.Now().Add(buckets.Wait()))
	if taken := take("a"); taken != 1 {
		t.Errorf("after the wait %d, want 1", taken)
	}
}

// Callers that the wider limit refuses take no place: they drive out no other.
func TestBuckets_TakeWithRemembersNoRefusedCaller(t *testing.T) {
	buckets := ratelimit.New(ratelimit.Rate{PerSecond: 1, Burst: 1}, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	if !buckets.Take(-1) {
		t.Fatal("refused within the limit")
	}
	for i := range 2 * ratelimit.Remembered {
		if buckets.TakeWith(i, func() bool { return false }) {
			t.Fatalf("caller %d was admitted", i)
		}
	}
	if buckets.Take(-1) {
		t.Error("a caller's bucket was forgotten for others that were refused")
	}
}
