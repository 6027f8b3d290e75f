package snapshot

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// GroupOf is the PodGroup that the pod belongs to, if it belongs to one.
func GroupOf(pod *corev1.Pod) (types.NamespacedName, bool) {
	if g := pod.Spec.SchedulingGroup; g != nil && g.PodGroupName != nil {
		return types.NamespacedName{Namespace: pod.Namespace, Name: *g.PodGroupName}, true
	}
	return types.NamespacedName{}, false
}

// Ended reports whether the pod gave its room back, though it is still there.
func Ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Succeeded reports whether the pod has done its work. A pod that ends well while it is being deleted was stopped, as
// trainings are that save a checkpoint on SIGTERM and exit with 0: its job starts it again.
func Succeeded(pod *corev1.Pod) bool { return SucceededIn(pod.Status.Phase, pod) }

// SucceededIn is Succeeded for a pod that was last seen before it reached its final phase.
func SucceededIn(phase corev1.PodPhase, pod *corev1.Pod) bool {
	return phase == corev1.PodSucceeded && pod.DeletionTimestamp == nil
}

// QueuedAt is the instant from which a gang waits. The controller preserves it across restarts of a job in an
// annotation, which it alone may write.
func QueuedAt(group *schedulingv1beta1.PodGroup) time.Time {
	if at := instant(group.Annotations[topology.AnnotationQueuedAt]); !at.IsZero() {
		return at
	}
	return group.CreationTimestamp.Time
}

// OrderOf returns the place in the queue of a PodGroup, or of a pod that is in none. The annotations of a pod are
// ignored: its owner writes them.
func OrderOf(o metav1.Object, priority int32) contention.Order {
	since := o.GetCreationTimestamp().Time
	if group, ok := o.(*schedulingv1beta1.PodGroup); ok {
		since = QueuedAt(group)
	}
	return contention.Order{Priority: priority, Since: since, Namespace: o.GetNamespace(), Name: o.GetName()}
}
