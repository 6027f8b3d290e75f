package statusserver

import (
	"math"
	"sync"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
)

// rate is how often something may happen: Burst times at once, and PerSecond from then on.
type rate struct {
	perSecond float32
	burst     int
}

// How often is enough. A trainer reports every 5 s at most (Kubeflow's SDK), so these only stop what runs wild.
const (
	jobPerSecond, jobBurst           = 1, 10
	strangerPerSecond, strangerBurst = 2, 20
	sourcePerSecond, sourceBurst     = 20, 100
	// remembered is how many buckets and tokens of each kind are kept; those not used for the longest time go first. A replica has 10,000
	// jobs that report, some of them with several pods.
	remembered = 32_768
	// callsPerProof is what the proof of an identity costs the API server: a TokenReview, a Pod and a Job.
	callsPerProof = 3
	// renewalShare is the part of the calls for proofs that goes into proving known tokens again: a tenth.
	renewalShare = 10
)

// proving and renewing bound how many first proofs and renewals are under way at a time. An API server that is slow would otherwise be
// given hundreds at once, by their rate times the time that each may take: they would crowd out writes, and end unanswered.
const proving, renewing = 32, 16

// seats bounds how many of something are under way at a time. Its capacity is the bound.
type seats chan struct{}

// take reports whether there was a free seat, which is taken then until leave.
func (s seats) take() bool {
	select {
	case s <- struct{}{}:
		return true
	default:
		return false
	}
}

func (s seats) leave() { <-s }

// buckets limits each of many callers by itself.
type buckets struct {
	rate  rate
	clock clock.PassiveClock

	mu    sync.Mutex
	byKey *lru.Cache
}

func newBuckets(r rate, c clock.PassiveClock) *buckets {
	return &buckets{rate: r, clock: c, byKey: lru.New(remembered)}
}

// take takes one from a caller's bucket, if there is one in it.
func (b *buckets) take(key any) bool {
	return b.takeWith(key, func() bool { return true })
}

// takeWith takes one from a caller's bucket, if there is one in it and the wider limit allows it too. A caller that the wider limit refuses at
// its first attempt is not remembered: what it says of itself costs no memory then.
func (b *buckets) takeWith(key any, wider func() bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	limiter, known := b.get(key)
	if !known {
		limiter = flowcontrol.NewTokenBucketPassiveRateLimiterWithClock(b.rate.perSecond, max(1, b.rate.burst), b.clock)
	}
	if !limiter.TryAccept() || !wider() {
		return false
	}
	if !known {
		b.byKey.Add(key, limiter)
	}
	return true
}

func (b *buckets) get(key any) (flowcontrol.PassiveRateLimiter, bool) {
	found, _ := b.byKey.Get(key)
	limiter, ok := found.(flowcontrol.PassiveRateLimiter)
	return limiter, ok
}

// wait is how long it takes until there is one in an empty bucket.
func (b *buckets) wait() time.Duration {
	return time.Duration(math.Ceil(1/float64(b.rate.perSecond))) * time.Second
}

// limits are the limits on those who have proven nothing yet. Jobs whose pods have proven that they are have one each (held.go).
type limits struct {
	// strangers limits what is to be proven, for each job from each address; sources for each address; proofs in all.
	strangers, sources, proofs *buckets
}

// newLimits reserves half of the calls for proofs for pods that are known already, so that strangers cannot hold up renewals.
func newLimits(queriesPerSecond float32, burst int, c clock.PassiveClock) limits {
	return limits{
		strangers: newBuckets(rate{strangerPerSecond, strangerBurst}, c),
		sources:   newBuckets(rate{sourcePerSecond, sourceBurst}, c),
		proofs:    newBuckets(rate{queriesPerSecond / (2 * callsPerProof), burst / (2 * callsPerProof)}, c),
	}
}

// stranger is who has proven nothing yet: a job is only what it claims.
type stranger struct {
	source, namespace, name string
}

// admit lets a stranger prove who it is. The narrowest limit is asked first, so that it protects the wider ones. One address can claim any
// number of jobs, so the limit of the address also bounds how many of them are remembered.
func (l limits) admit(who stranger) (wait time.Duration, ok bool) {
	if !l.strangers.takeWith(who, func() bool { return l.sources.take(who.source) }) {
		return max(l.strangers.wait(), l.sources.wait()), false
	}
	if !l.proofs.take(nil) {
		return l.proofs.wait(), false
	}
	return 0, true
}
