package gangqueue

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// wanted returns the number of members that have to exist before a gang is admitted. An elastic gang that has no nodes
// yet waits for all, so that it starts with as many as fit and not with those that its Job made first; but not for
// longer than patienceForMembers, since a quota may allow no more.
func (q *GangQueue) wanted(group *schedulingv1beta1.PodGroup) int {
	need, key := minCount(group), types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	span, ok := topology.SpanOf(group.Annotations)
	if !ok || !snapshot.IsElastic(group) || q.holding(key) > 0 {
		return need
	}
	q.gangs.mu.Lock()
	defer q.gangs.mu.Unlock()
	if uid, ok := q.gangs.enough[key]; ok && uid == group.UID {
		return need
	}
	return need - span.Least + span.Most
}

// startsWithFewer lets an elastic gang in whose Job has not made all members, but enough of them, and reports whether
// it did.
func (q *GangQueue) startsWithFewer(group *schedulingv1beta1.PodGroup) bool {
	if !snapshot.IsElastic(group) {
		return false
	}
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	q.gangs.mu.Lock()
	q.gangs.enough[key] = group.UID
	q.gangs.mu.Unlock()
	if complete, _ := q.openIfComplete(key); complete == nil {
		return false
	}
	q.activate(key) // also if the gang is open since an earlier start
	return true
}
