package leader_test

import (
	"fmt"
	"testing"
	"time"
)

// After a graceful stop no job waits longer than 2 s for its JobSet: the lease is released when the workers have
// stopped, and the other replica asks for it several times a second.
func TestLeaderElection_GracefulStop(t *testing.T) {
	r := newReplicas(t)
	for round := range rounds() {
		leader := r.leader()
		took := r.longestWait(fmt.Sprintf("graceful-%d", round), func() { r.stop(leader) })
		t.Logf("graceful stop: the longest wait for a JobSet was %.2f s", took.Seconds())
		if bound := within(2 * time.Second); took > bound {
			t.Errorf("a job waited %s for its JobSet, at most %s are allowed", took, bound)
		}
		r.join()
	}
}

// After kill -9 of the leader no job waits longer than 8 s: the lease is held so long for a process that has died.
func TestLeaderElection_Kill(t *testing.T) {
	r := newReplicas(t)
	for round := range rounds() {
		leader := r.leader()
		took := r.longestWait(fmt.Sprintf("kill-%d", round), func() { r.kill(leader) })
		t.Logf("kill -9: the longest wait for a JobSet was %.2f s", took.Seconds())
		if bound := within(8 * time.Second); took > bound {
			t.Errorf("a job waited %s for its JobSet, at most %s are allowed", took, bound)
		}
		r.join()
	}
}

// An API server that accepts all requests and answers none for 5 s changes no leader, wherever in its renewal the
// leader was, and the leader continues to work afterwards.
func TestLeaderElection_SilentServer(t *testing.T) {
	const silence = 5 * time.Second
	r := newReplicas(t)
	for round := range rounds() {
		before := r.lease()
		took := r.longestWait(fmt.Sprintf("silence-%d", round), func() { r.silence(silence) })
		t.Logf("%s of silence: the longest wait for a JobSet was %.2f s", silence, took.Seconds())
		if bound := silence + within(2*time.Second); took > bound {
			t.Errorf("a job waited %s for its JobSet, at most %s are allowed", took, bound)
		}
		after := r.lease()
		if *after.HolderIdentity != *before.HolderIdentity || *after.LeaseTransitions != *before.LeaseTransitions {
			t.Errorf("the lease is held by %s since transition %d, it was by %s since %d",
				*after.HolderIdentity, *after.LeaseTransitions, *before.HolderIdentity, *before.LeaseTransitions)
		}
		r.allRun()
	}
}
