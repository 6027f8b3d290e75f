//go:build !race

package gangqueue_test

import (
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// An elastic gang is not admitted with the members that its Job makes first, although they would be enough; it is
// admitted with the members that exist when no more have arrived for a while.
func TestGangQueue_ElasticGangWaitsForAllItsMembers(t *testing.T) {
	t.Parallel()
	c := impatient(t, 8)
	group, members := schedulertest.ElasticGang("whole", 2, 4)
	c.Create(t, group, members[:3])
	time.Sleep(100 * time.Millisecond)
	if node := c.NodeOf(members[0].Name); node != "" {
		t.Errorf("the gang started on %s and elsewhere before all its members existed", node)
	}
	c.Create(t, members[3:])
	c.WaitBound(t, members)

	c.DeletePods(t, members)
	for i, member := range members {
		again := member.DeepCopy()
		again.Name, again.UID = member.Name+"-again", member.UID+"-again"
		members[i] = again
	}
	c.Create(t, members[:3]) // its group is still there, and a quota allows no more now
	c.WaitBound(t, members[:3])

	group, members = schedulertest.ElasticGang("short", 2, 4)
	c.Create(t, group, members[:3]) // a quota allows no more
	c.WaitBound(t, members[:3])
}
