package gangplacement

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	fwk "k8s.io/kube-scheduler/framework"
)

// runningMembers returns the members that have nodes in this cycle's snapshot, but for those that are being deleted: a
// member that starts now would start without them.
func runningMembers(snapshot fwk.SharedLister, group *schedulingv1beta1.PodGroup) []*corev1.Pod {
	state, err := snapshot.PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return nil // the group has no pods yet
	}
	return slices.DeleteFunc(state.ScheduledPods(), func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// waitingMembers returns the members that have no node in this cycle's snapshot.
func waitingMembers(snapshot fwk.SharedLister, group *schedulingv1beta1.PodGroup) []*corev1.Pod {
	state, err := snapshot.PodGroupStates().Get(group.Namespace, group.Name)
	if err != nil {
		return nil
	}
	return slices.Collect(maps.Values(state.UnscheduledPods())) // the order is that of ranks later
}
