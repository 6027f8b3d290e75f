package statusserver

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/controller/ratelimit"
)

// How often is enough. A trainer reports every 5 s at most (Kubeflow's SDK), so these only stop faulty clients.
const (
	jobPerSecond, jobBurst           = 1, 10
	strangerPerSecond, strangerBurst = 2, 20
	sourcePerSecond, sourceBurst     = 20, 100
	// remembered is the number of tokens that are retained; those not used for the longest time are forgotten first. A
	// replica has 10,000 jobs that report, some of them with several pods.
	remembered = ratelimit.Remembered
	// callsPerProof is the number of calls to the API server by which an identity is proven: a TokenReview, a Pod and a
	// Job.
	callsPerProof = 3
	// renewalShare is the share of the calls for proofs that is used to prove known tokens again: a tenth.
	renewalShare = 10
)

// proving and renewing bound how many first proofs and renewals are under way at a time. An API server that is slow
// would otherwise be given hundreds at once, by their rate times the time that each may take: they would crowd out
// writes, and end unanswered.
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

// limits are the limits on clients that are not authenticated. Jobs with an authenticated pod have one each (held.go).
type limits struct {
	// strangers limits proofs for each job from each address; sources for each address; proofs in all.
	strangers, sources, proofs *ratelimit.Buckets
}

// newLimits reserves half of the calls for proofs for pods that are known already, so that strangers cannot hold up
// renewals.
func newLimits(queriesPerSecond float32, burst int, c clock.PassiveClock) limits {
	return limits{
		strangers: ratelimit.New(ratelimit.Rate{PerSecond: strangerPerSecond, Burst: strangerBurst}, c),
		sources:   ratelimit.New(ratelimit.Rate{PerSecond: sourcePerSecond, Burst: sourceBurst}, c),
		proofs: ratelimit.New(ratelimit.Rate{
			PerSecond: queriesPerSecond / (2 * callsPerProof), Burst: burst / (2 * callsPerProof),
		}, c),
	}
}

// stranger is a caller that has proven nothing yet: its job is only claimed.
type stranger struct {
	source, namespace, name string
}

// admit takes a proof from the limits for an unauthenticated client. The narrowest limit is evaluated first, so that it
// protects the wider ones. One address can claim any number of jobs, so the limit of the address also bounds the number
// of jobs that are remembered.
func (l limits) admit(who stranger) (wait time.Duration, ok bool) {
	if !l.strangers.TakeWith(who, func() bool { return l.sources.Take(who.source) }) {
		return max(l.strangers.Wait(), l.sources.Wait()), false
	}
	if !l.proofs.Take(nil) {
		return l.proofs.Wait(), false
	}
	return 0, true
}
