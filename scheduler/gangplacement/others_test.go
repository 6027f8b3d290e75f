//go:build !race

package gangplacement_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// slow is a clock by which everything has taken long.
type slow struct{ clock.RealClock }

func (s slow) Since(at time.Time) time.Duration { return s.RealClock.Since(at) + 100*time.Millisecond }

// When a cycle has taken long, the other gangs that wait are evaluated in cycles of their own. Freed room is still
// offered to all of them, in their order, and the last is the first that fits.
func TestGangPlacement_SlowEvaluationsAreSpreadOverCycles(t *testing.T) {
	t.Parallel()
	running, members := schedulertest.RunningGang("runs", "", schedulertest.CliqueNodes(0, 4)...)
	c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(1, 4), running, members)
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	c.StartScheduler(ctx, t, c, schedulertest.Config(t), schedulertest.Registry(slow{}))
	for i := range 6 {
		group, pods := schedulertest.Gang(fmt.Sprint("large-", i), 10-i, "")
		schedulertest.SetQueuedAt(group, i)
		c.Create(t, group, pods)
		c.WaitRejected(t, group.Name)
	}
	group, pods := schedulertest.Gang("fits", 4, "")
	schedulertest.SetQueuedAt(group, 10)
	c.Create(t, group, pods)
	c.WaitRejected(t, "fits")
	c.DeletePods(t, members)
	got := slices.Sorted(slices.Values(c.WaitBound(t, pods)))
	if !slices.Equal(got, schedulertest.CliqueNodes(0, 4)) {
		t.Errorf("the gang is on %v", got)
	}
}
