package snapshot

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// GroupOf is the PodGroup that the pod belongs to, if it belongs to one.
func GroupOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return types.NamespacedName{Namespace: pod.Namespace, Name: *g.PodGroupName}, true
	}
	return types.NamespacedName{}, false
}

// Deleted is the PodGroup that an informer's deletion event is about.
func Deleted(obj any) (*schedulingv1beta1.PodGroup, bool) {
	if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj
	}
	group, ok := obj.(*schedulingv1beta1.PodGroup)
	return group, ok
}
