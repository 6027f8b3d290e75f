package gangqueue

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/scheduler/runtimes"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// learnFrom reports a pod that has left its place to the learner of run times. phase is its last known phase.
func (q *GangQueue) learnFrom(pod *corev1.Pod, phase corev1.PodPhase) {
	if pod.Spec.SchedulerName != q.profile {
		return
	}
	q.learnEnd(pod, phase)
	if group, _ := snapshot.GroupOf(pod); q.survivors(pod) == 0 && q.leavers(group) == 0 {
		q.queue.Vacates(pod)
	}
}

// learnEnd reports how a pod ended, unless that is not known yet: it is reported again then.
func (q *GangQueue) learnEnd(pod *corev1.Pod, phase corev1.PodPhase) {
	switch {
	case snapshot.SucceededIn(phase, pod):
		q.queue.Ends(pod, runtimes.Succeeded)
	case eviction.ByScheduler(pod), phase == corev1.PodFailed && pod.DeletionTimestamp == nil:
		q.queue.Ends(pod, runtimes.Failed)
	case pod.DeletionTimestamp != nil:
		q.queue.Ends(pod, runtimes.Deleted)
	}
}
