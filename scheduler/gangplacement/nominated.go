package gangplacement

import (
	corev1 "k8s.io/api/core/v1"
	quota "k8s.io/apiserver/pkg/quota/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// nominations reads and drops the nominations of waiting pods, which the framework's filters count as if the pods ran.
// It has no state: the framework has the nominations, under a lock of its own.
type nominations struct {
	nominator  fwk.PodNominator
	preemption *preemptionWatch
}

// reserved returns, by node, the room that gangs of the same or a higher priority have made free by in-tree preemption
// and did not take yet. The framework's filters count it; a plan that did not would be refused, and the next preemption
// would look for still more victims.
func (n nominations) reserved(q question) map[string]corev1.ResourceList {
	if !n.preemption.othersWait(q.key) {
		return nil
	}
	room := make(map[string]corev1.ResourceList)
	for _, info := range q.parent.Nodes {
		node := info.Node().Name
		for _, nominated := range n.nominator.NominatedPodsForNode(node) {
			pod := nominated.GetPod()
			group, _ := snapshot.GroupOf(pod)
			if group != q.key && corev1helpers.PodPriority(pod) >= corev1helpers.PodPriority(q.waiting[0]) {
				room[node] = quota.Add(room[node], snapshot.Requests(pod))
			}
		}
	}
	return room
}

// clear drops the nominations of members that are now planned elsewhere: they would hold room twice.
func (n nominations) clear(plan *plan, waiting []*corev1.Pod) {
	for _, pod := range waiting {
		if pin := plan.pins[pod.Name]; pin == nil || pin.node != pod.Status.NominatedNodeName {
			n.nominator.DeleteNominatedPodIfExists(pod)
		}
	}
}

// clearOthers drops the nominations on planned nodes of gangs that wait for victims of the queue: the filters would
// count them, and the queue has found that their leases do not bind this gang.
func (n nominations) clearOthers(plan *plan, q question) {
	for _, node := range plan.pinned.Nodes {
		for _, other := range n.nominator.NominatedPodsForNode(node.Node().Name) {
			if group, ok := snapshot.GroupOf(other.GetPod()); ok && group != q.key && !n.preemption.waits(group) {
				n.nominator.DeleteNominatedPodIfExists(other.GetPod())
			}
		}
	}
}
