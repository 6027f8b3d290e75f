package leader_test

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/simulator/bench/failover"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// After a graceful stop no job waits longer than 2 s for its JobSet: the lease is released when the workers have
// stopped, and the other replica asks for it several times a second.
func TestLeaderElection_GracefulStop(t *testing.T) {
	r := newReplicas(t)
	for round := range rounds() {
		leader := r.leader()
		took := r.longestWait(fmt.Sprintf("graceful-%d", round), func() { r.stop(leader) })
		t.Logf("graceful stop: the longest wait for a JobSet was %s", took)
		if bound := within(2*time.Second, took.before); took.all > bound {
			t.Errorf("a job waited %s for its JobSet, at most %s are allowed", took.all, bound)
		}
		r.allRun()
		r.join()
	}
}

// After kill -9 of the leader no job waits longer than 8 s: the lease is held so long for a process that has died.
func TestLeaderElection_Kill(t *testing.T) {
	r := newReplicas(t)
	for round := range rounds() {
		leader := r.leader()
		took := r.longestWait(fmt.Sprintf("kill-%d", round), func() { r.kill(leader) })
		t.Logf("kill -9: the longest wait for a JobSet was %s", took)
		if bound := within(8*time.Second, took.before); took.all > bound {
			t.Errorf("a job waited %s for its JobSet, at most %s are allowed", took.all, bound)
		}
		r.allRun()
		r.join()
	}
}

// An API server that accepts all requests and answers none for 5 s changes no leader, wherever in its renewal the
// leader was, and the leader continues to work afterwards. On a machine that other tests share, a change is no fault if
// the silence lasted longer than meant; then it is repeated with new replicas.
func TestLeaderElection_SilentServer(t *testing.T) {
	r := newReplicas(t)
	for round := range rounds() {
		for try := 1; ; try++ {
			faults, excess := r.endure(fmt.Sprintf("silence-%d-%d", round, try))
			if len(faults) == 0 {
				break
			}
			if *long || try == tries || excess <= failover.MostExcess {
				t.Fatalf("the API server was silent %s longer than meant: %s", excess, strings.Join(faults, "; "))
			}
			t.Logf("again, because the silence lasted %s longer than meant: %s", excess, strings.Join(faults, "; "))
			r.restart()
		}
	}
}

// endure silences the API server while jobs are created. It returns the faults of the leader, and the excess of the
// silence.
func (r *replicas) endure(name string) (faults []string, excess time.Duration) {
	r.t.Helper()
	const silence = 5 * time.Second
	before, leader := r.lease(), r.leader()
	took := r.longestWait(name, func() { excess = r.silence(*before.HolderIdentity, silence) })
	r.t.Logf("%s of silence: the longest wait for a JobSet was %s", silence, took)
	if bound := silence + within(2*time.Second, took.before); took.all > bound {
		faults = append(faults, fmt.Sprintf("a job waited %s for its JobSet, at most %s are allowed", took.all, bound))
	}
	after := r.lease()
	if *after.HolderIdentity != *before.HolderIdentity || *after.LeaseTransitions != *before.LeaseTransitions {
		faults = append(faults, fmt.Sprintf("the lease is held by %s since transition %d, it was by %s since %d",
			*after.HolderIdentity, *after.LeaseTransitions, *before.HolderIdentity, *before.LeaseTransitions))
	}
	for _, replica := range append(slices.Clone(r.running), leader) {
		if !replica.Runs() {
			faults = append(faults, replica.Name+" has ended")
		}
	}
	return faults, excess
}

// A replica that ends by itself, as one does that has lost its lease, fails no later start of another.
func TestReplica_EndSparesOtherStarts(t *testing.T) {
	r := newReplicas(t)
	follower := r.running[1]
	for _, component := range shared.Components() {
		if component.Name != follower.Name {
			continue
		}
		if err := syscall.Kill(component.PID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	testcluster.Within(t, 20*time.Second, "the end of "+follower.Name, func() bool { return !follower.Runs() })
	r.leave(follower)
	r.join()
	r.allRun()
}
