// Package ratelimit limits each of many callers by itself, in bounded memory.
package ratelimit

import (
	"math"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// Remembered is the largest number of callers' buckets that are retained; those not used for the longest time are
// forgotten first.
const Remembered = 32_768

// Rate limits how often something may happen: Burst times at once, and PerSecond from then on. PerSecond is above 0; a
// Burst below 1 is 1.
type Rate struct {
	PerSecond float32
	Burst     int
}

// Buckets is a token bucket for each caller. It is safe for use by many.
type Buckets struct {
	rate  Rate
	clock clock.PassiveClock

	mu    sync.Mutex
	byKey *lru.Cache
}

// New makes buckets that are full.
func New(r Rate, c clock.PassiveClock) *Buckets {
	return &Buckets{rate: r, clock: c, byKey: lru.New(Remembered)}
}

// Take takes one from a caller's bucket, if there is one in it. The key is any comparable value.
func (b *Buckets) Take(key any) bool {
	return b.TakeWith(key, func() bool { return true })
}

// TakeWith takes one from a caller's bucket, if there is one in it and the wider limit allows it too. A caller that the
// wider limit refuses at its first attempt is not remembered, so that invented keys use no memory.
func (b *Buckets) TakeWith(key any, wider func() bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	limiter, known := b.get(key)
	if !known {
		limiter = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(b.rate.PerSecond, max(1, b.rate.Burst), b.clock)
	}
	if !limiter.TryAccept() || !wider() {
		return false
	}
	if !known {
		b.byKey.Add(key, limiter)
	}
	return true
}

func (b *Buckets) get(key any) (flowcontrol.PassiveRateLimiter, bool) {
	found, _ := b.byKey.Get(key)
	limiter, ok := found.(flowcontrol.PassiveRateLimiter)
	return limiter, ok
}

// Wait returns the time until there is one in an empty bucket, in whole seconds.
func (b *Buckets) Wait() time.Duration {
	return time.Duration(math.Ceil(1/float64(b.rate.PerSecond))) * time.Second
}
