package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// GroupOf is the PodGroup that the pod belongs to, if it belongs to one.
func GroupOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return types.NamespacedName{Namespace: pod.Namespace, Name: *g.PodGroupName}, true
	}
	return types.NamespacedName{}, false
}
