package gangqueue

import (
	"fmt"
	"time"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/explanation"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// patienceForMembers is the time after which the group of an incomplete gang reports its missing members: a job of
// thousands of pods is created in less.
const patienceForMembers = 30 * time.Second

// watchMembers schedules a check of the gang. One pending check per gang is enough: it reads the state at its time.
func (q *GangQueue) watchMembers(key types.NamespacedName) {
	if q.explain == nil {
		return
	}
	q.gangs.mu.Lock()
	pending := q.gangs.watched[key]
	q.gangs.watched[key] = true
	q.gangs.mu.Unlock()
	if !pending { // not under our lock: a clock may call back while it holds its own
		q.clock.AfterFunc(patienceForMembers, func() { q.explainMissing(key) })
	}
}

// explainMissing reports on the group of an incomplete gang its missing members, and of a gang whose members differ in
// their priorities that they do. Nothing else would: the gang is not admitted to the queue. When it is, the verdict
// about its place replaces the report.
func (q *GangQueue) explainMissing(key types.NamespacedName) {
	q.gangs.mu.Lock()
	delete(q.gangs.watched, key)
	q.gangs.mu.Unlock()
	group, err := q.handle.PodGroupManager().PodGroups().Get(key.Namespace, key.Name)
	if err != nil || group.DeletionTimestamp != nil {
		return
	}
	state, err := q.handle.PodGroupManager().PodGroupStates().Get(key.Namespace, key.Name)
	if err != nil || state.AllPodsCount() == 0 {
		return // its job has no pods, and says why
	}
	differ := differing(state)
	if differ == "" && (q.complete(group) || q.startsWithFewer(group)) {
		return
	}
	if !q.acts() {
		q.watchMembers(key) // this scheduler may lead by then
		return
	}
	if differ != "" {
		q.explain.Waits(group, explanation.WrongRequest, differ, standing.Turn{})
		return
	}
	q.noteFinished(group)
	q.askJobs(group, state)
	q.explain.Waits(
		group,
		explanation.Incomplete,
		missing(group, state.AllPodsCount(), state.ScheduledPodsCount(), q.leavers(key)),
		standing.Turn{},
	)
}

// missing describes the missing members of an incomplete gang. Of the members that exist some run, and of those some
// leave.
func missing(group *schedulingv1beta1.PodGroup, exist, running, leave int) string {
	need := minCount(group)
	exist, running = exist-leave, running-leave
	if running > 0 || leave > 0 {
		text := fmt.Sprintf("%d of the %d members that it needs are lost, and not made again yet", need-exist, need)
		if running > 0 {
			text += fmt.Sprintf("; %d run and wait for them", running)
		}
		if leave > 0 {
			text += fmt.Sprintf("; %d are being deleted and have not ended", leave)
		}
		return text
	}
	return fmt.Sprintf("%d of the %d members that it needs exist; the others have to be created first", exist, need)
}
