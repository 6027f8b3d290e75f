package waiting_test

import (
	"testing"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// The result of a member may be reported after the others were deleted for it, since ended pods are watched apart.
// Their places are reserved until it is known and, if the member failed, until the gang returns.
func TestQueue_LostMemberEndsUnclear(t *testing.T) {
	group, members := schedulertest.RunningGang(
		"crashes",
		"clique",
		schedulertest.NodeName(0, 0),
		schedulertest.NodeName(0, 1),
	)
	meta.SetStatusCondition(&group.Status.Conditions, metav1.Condition{
		Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled",
	})
	for name, failed := range map[string]bool{"it failed": true, "nothing is told": false} {
		t.Run(name, func(t *testing.T) {
			queue := waiting.New(timing.With(clock.RealClock{}), contention.DefaultPolicy())
			queue.Lost(group, members[0], waiting.Unclear, true)
			queue.Lost(group, members[1], waiting.TakenAway, false)
			if failed {
				queue.Fails(members[0])
			}
			kept := queue.State().Machine.Leases
			if nodes := queue.LeasedNodes(
				waiting.IDOf(types.NamespacedName{Namespace: group.Namespace, Name: group.Name}),
			); len(kept) != 1 ||
				len(nodes) != 2 {
				t.Fatalf("kept are %+v on %v", kept, nodes)
			}
			if left := time.Until(time.Unix(kept[0].Expiry, 0)); failed != (left > 3*time.Second) {
				t.Errorf("the places are kept for %s", left)
			}
		})
	}
}
