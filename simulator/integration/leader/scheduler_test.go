package leader_test

import (
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/bench/failover"
)

// Of two lockstep-schedulers the one that leads is asked to stop (nothing may be bound for 2 s), is killed (8 s), and
// gets no answer for 5 s, which changes no leader. No other scheduler runs afterwards.
func TestLeaderElection_Scheduler(t *testing.T) {
	most := tries
	if *long {
		most = 1
	}
	results, err := failover.Measure(t.Context(), shared.Cluster, failover.Plan{
		Running:      10,
		Waiting:      5,
		Every:        200 * time.Millisecond,
		Rounds:       rounds(),
		Tries:        most,
		Settling:     5 * time.Second,
		StandbyAfter: 10 * time.Second,
		Say:          func(line string) { t.Log(line) },
		Clock:        clock.RealClock{},
	})
	if err != nil {
		t.Fatal(err)
	}
	undisturbed := results[0].Longest()
	for _, r := range results {
		if bound := within(r.Within, undisturbed); r.Within > 0 && r.Longest() > bound {
			t.Errorf("the leader %s: nothing was bound for %v, at most %v are allowed", r.Event, r.Longest(), bound)
		}
	}
}
