package statusserver

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/controller/ratelimit"
)

// How often is enough. A trainer reports every 5 s at most (Kubeflow's SDK), so these only stop what runs wild.
const (
	jobPerSecond, jobBurst           = 1, 10
	strangerPerSecond, strangerBurst = 2, 20
	sourcePerSecond, sourceBurst     = 20, 100
	// remembered is how many tokens are kept; those not used for the longest time are forgotten first. A replica has 10,000 jobs that report,
	// some of them with several pods.
	remembered = ratelimit.Remembered
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

// limits are the limits on those who have proven nothing yet. Jobs whose pods have proven that they are have one each (held.go).
type limits struct {
	// strangers limits what is to be proven, for each job from each address; sources for each address; proofs in all.
	strangers, sources, proofs *ratelimit.Buckets
}

// newLimits reserves half of the calls for proofs for pods that are known already, so that strangers cannot hold up renewals.
func newLimits(queriesPerSecond float32, burst int, c clock.PassiveClock) limits {
	return limits{
		strangers: ratelimit.New(ratelimit.Rate{PerSecond: strangerPerSecond, Burst: strangerBurst}, c),
		sources:   ratelimit.New(ratelimit.Rate{PerSecond: sourcePerSecond, Burst: sourceBurst}, c),
		proofs: ratelimit.New(ratelimit.Rate{
			PerSecond: queriesPerSecond / (2 * callsPerProof), Burst: burst / (2 * callsPerProof),
		}, c),
	}
}

// stranger is who has proven nothing yet: a job is only what it claims.
type stranger struct {
	source, namespace, name string
}

// admit lets a stranger prove who it is. The narrowest limit is asked first, so that it protects the wider ones. One address can claim any
// number of jobs, so the limit of the address also bounds how many of them are remembered.
func (l limits) admit(who stranger) (wait time.Duration, ok bool) {
	if !l.strangers.TakeWith(who, func() bool { return l.sources.Take(who.source) }) {
		return max(l.strangers.Wait(), l.sources.Wait()), false
	}
	if !l.proofs.Take(nil) {
		return l.proofs.Wait(), false
	}
	return 0, true
}
