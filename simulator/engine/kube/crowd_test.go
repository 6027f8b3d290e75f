package kube_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// crowd is a random workload for the default fleet, more than it can hold at once. Instants and durations are such that
// no two events are within a few seconds of each other, so that the order of engines' events within a second is
// unambiguous.
func crowd(seed uint64, n int) trace.Trace {
	chance := rand.New(rand.NewPCG(seed, 7))
	levels := []string{"", rack, "tier-0", rack}
	var t trace.Trace
	for i := range n {
		j := whole(fmt.Sprintf("j%02d", i), time.Duration(i)*20*time.Second, 0, 1+chance.IntN(18))
		j.Duration = time.Duration(4+chance.IntN(60))*20*time.Second + 7*time.Second
		j.Required = levels[chance.IntN(len(levels))]
		t.Jobs = append(t.Jobs, j)
	}
	slices.SortStableFunc(t.Jobs, func(a, b trace.Job) int { return int(a.Submit - b.Submit) })
	return t
}
