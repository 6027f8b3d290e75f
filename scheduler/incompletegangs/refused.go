package incompletegangs

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// WasRefused reports whether the kubelet did not let the pod start for want of room: of a resource, or of a device.
func WasRefused(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed &&
		(strings.HasPrefix(pod.Status.Reason, "OutOf") || pod.Status.Reason == "UnexpectedAdmissionError")
}

// refused evicts the gang of a member that was refused while the gang starts, at once: the others can only wait for one
// that is not to come to where it was meant to be. If the gang ran for longer than the grace, the refused member replaces one
// that was lost, and what happens then is for the job to say.
func (w *watch) refused(ctx context.Context, pod *corev1.Pod) {
	key, ok := snapshot.GroupOf(pod)
	if !ok || !w.acts() {
		return
	}
	w.mu.Lock()
	r := w.gangs[key]
	starts := r != nil && !r.inherited && w.timing.Clock.Since(r.began) < w.patience.Start
	if starts { // and will start again
		delete(w.gangs, key)
	}
	w.mu.Unlock()
	if starts {
		w.timing.Beside(func() { w.evictAll(ctx, key, pod) })
	}
}

func (w *watch) evictAll(ctx context.Context, key types.NamespacedName, because *corev1.Pod) {
	logger := klog.FromContext(ctx).WithValues("podGroup", key)
	group, err := w.groups.PodGroups(key.Namespace).Get(key.Name)
	if err != nil || needed(group) == 0 {
		return
	}
	list, err := w.client.CoreV1().Pods(key.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		logger.Error(err, "Looking for the members of a gang of which one was refused")
		return
	}
	bound, _ := members(list.Items, key)
	w.evict(ctx, group, append(bound, because), Refused, fmt.Sprintf(
		"node %s refused member %s of gang %s: %s",
		because.Spec.NodeName,
		because.Name,
		group.Name,
		because.Status.Reason,
	))
}
