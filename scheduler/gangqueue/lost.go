package gangqueue

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// left reports to the queue that a pod gave its room back. The place of a member of a gang that was whole is reserved
// for it, unless a scheduler evicted the member, or it has succeeded.
func (q *GangQueue) left(pod *corev1.Pod) {
	phase := pod.Status.Phase
	if end := q.endings.Phase(pod); end != "" { // the scheduler's informer shows the earlier phase
		phase = end
	}
	if group := q.goesOn(pod); group != nil && !snapshot.SucceededIn(phase, pod) && !eviction.ByScheduler(pod) {
		q.lost(group, pod, lossOf(pod, phase))
		q.watchMembers(types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
	}
	q.queue.Left(pod)
	q.learnFrom(pod, phase)
}

// leavesSoon reserves the place of a member that is being deleted before it is free: the scheduler's own handlers may
// learn of that before ours do.
func (q *GangQueue) leavesSoon(pod *corev1.Pod) {
	if pod.Spec.NodeName == "" || snapshot.Ended(pod) || eviction.ByScheduler(pod) {
		return
	}
	if group := q.goesOn(pod); group != nil {
		q.lost(group, pod, lossOf(pod, pod.Status.Phase))
	}
}

// lossOf judges a member by its last seen state, and its phase. A kubelet ends a member that is deleted by a signal,
// mostly as Failed: that is no failure of a pod that its user has deleted. A Job deletes all its pods also to start
// them again. One that is suspended or deleted loses its group, and with it the places.
func lossOf(pod *corev1.Pod, phase corev1.PodPhase) waiting.Loss {
	switch {
	case eviction.Disrupted(pod), pod.DeletionTimestamp != nil && ofJob(pod):
		return waiting.Failed
	case pod.DeletionTimestamp != nil:
		return waiting.TakenAway
	case phase == corev1.PodFailed:
		return waiting.Failed
	}
	return waiting.Unclear
}

// ofJob reports whether a Job makes a pod.
func ofJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job" && owner.APIVersion == batchv1.SchemeGroupVersion.String()
}

// ended follows a pod that has ended, before or after the scheduler's informer drops it.
func (q *GangQueue) ended(pod *corev1.Pod) {
	q.learnEnd(pod, pod.Status.Phase)
	if snapshot.Succeeded(pod) {
		q.queue.Finished(pod)
		return
	}
	if eviction.ByScheduler(pod) {
		return
	}
	loss := lossOf(pod, pod.Status.Phase)
	running, err := q.pods.Pods(pod.Namespace).Get(pod.Name)
	if err != nil || running.UID != pod.UID {
		if loss == waiting.Failed {
			q.queue.Fails(pod)
		}
		return
	}
	if group := q.goesOn(running); group != nil {
		q.lost(group, running, loss)
	}
}

// lost reserves the place of a member if its gang needs the member: an elastic gang with enough members left continues
// without it.
func (q *GangQueue) lost(group *schedulingv1beta1.PodGroup, pod *corev1.Pod, loss waiting.Loss) {
	if q.endings == nil && loss != waiting.Failed {
		return // a scheduler that is played: the jobs there lose all members at once, or none, and never by a failure
	}
	if q.acts == nil || !q.acts() {
		return // a scheduler that stands by does not see the start that ends the lease
	}
	if survivors := q.survivors(pod); survivors < minCount(group) {
		q.queue.Lost(group, pod, loss, survivors > 0)
		// The group may have changed since it was read, and the change has then found nothing to end.
		if now, err := q.groups.PodGroups(group.Namespace).Get(group.Name); err != nil || snapshot.JobEnded(now) {
			q.queue.NoReturn(types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
		}
	}
}

// goesOn returns the group of a member of a gang that is to continue, nil for any other pod.
func (q *GangQueue) goesOn(pod *corev1.Pod) *schedulingv1beta1.PodGroup {
	key, ok := snapshot.GroupOf(pod)
	if !ok || pod.Spec.SchedulerName != q.profile {
		return nil
	}
	// The informer's own store: if the group is no longer in it, its leases may have been revoked already, and nothing
	// would revoke another one.
	group, err := q.groups.PodGroups(key.Namespace).Get(key.Name)
	if err != nil || group.DeletionTimestamp != nil || snapshot.JobEnded(group) ||
		group.Spec.SchedulingPolicy.Gang == nil ||
		snapshot.Final(group) && !made(pod) ||
		meta.IsStatusConditionTrue(group.Status.Conditions, schedulingv1beta1.DisruptionTarget) {
		return nil
	}
	return group
}

// made reports whether a controller makes the pod, and so can make it again. A pod that belongs to another pod, as
// Spark's executors to their driver, has none.
func made(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind != "Pod"
}

// membersOf are some members of each gang. Counting them anew for each member that leaves would take time quadratic in
// the size of a gang that crashes.
type membersOf map[types.NamespacedName]map[types.UID]struct{}

// put puts a member in, or takes it out.
func (m membersOf) put(gang types.NamespacedName, member types.UID, in bool) {
	of := m[gang]
	switch {
	case in && of == nil:
		m[gang] = map[types.UID]struct{}{member: {}}
	case in:
		of[member] = struct{}{}
	default:
		delete(of, member)
		if len(of) == 0 {
			delete(m, gang)
		}
	}
}

// follow notes whether a pod of the profile holds a place, or leaves it.
func (q *GangQueue) follow(pod *corev1.Pod) {
	there := pod.Spec.NodeName != "" && !snapshot.Ended(pod)
	q.track(pod, there && pod.DeletionTimestamp == nil, there && pod.DeletionTimestamp != nil)
}

func (q *GangQueue) track(pod *corev1.Pod, holds, leaves bool) {
	key, ok := snapshot.GroupOf(pod)
	if !ok || pod.Spec.SchedulerName != q.profile {
		return
	}
	q.gangs.mu.Lock()
	defer q.gangs.mu.Unlock()
	q.gangs.holders.put(key, pod.UID, holds)
	q.gangs.leaving.put(key, pod.UID, leaves)
}

// leavers returns the number of members of the gang that are being deleted and have not ended.
func (q *GangQueue) leavers(key types.NamespacedName) int {
	q.gangs.mu.Lock()
	defer q.gangs.mu.Unlock()
	return len(q.gangs.leaving[key])
}

// holding returns the number of members of a gang that hold their places.
func (q *GangQueue) holding(key types.NamespacedName) int {
	q.gangs.mu.Lock()
	defer q.gangs.mu.Unlock()
	return len(q.gangs.holders[key])
}

// survivors returns the number of other members of the pod's gang that hold their places.
func (q *GangQueue) survivors(lost *corev1.Pod) int {
	key, _ := snapshot.GroupOf(lost)
	q.gangs.mu.Lock()
	defer q.gangs.mu.Unlock()
	of := q.gangs.holders[key]
	if _, itself := of[lost.UID]; itself {
		return len(of) - 1
	}
	return len(of)
}
