package incompletegangs

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// WasRefused reports whether the kubelet did not let the pod start for want of room: of a resource, or of a device.
func WasRefused(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed && strings.HasPrefix(pod.Status.Reason, "OutOf") || LacksDevice(pod)
}

// LacksDevice reports whether the kubelet refused the pod for want of a device that it had promised: that is no other
// scheduler's doing.
func LacksDevice(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "UnexpectedAdmissionError"
}

// ended evicts the gang of a member that a kubelet refused while the gang starts, at once: the others can only wait for
// one that does not arrive where it was meant to be. If the gang has been whole for longer than the grace, the refused
// member replaces one that was lost, and the decision is left to its job.
func (w *watch) ended(ctx context.Context, pod *corev1.Pod) {
	key, ok := snapshot.GroupOf(pod)
	if ok && snapshot.Succeeded(pod) {
		w.succeeds(key, pod)
	}
	if !ok || !WasRefused(pod) || !w.Acts() {
		return
	}
	group, err := w.groups.PodGroups(key.Namespace).Get(key.Name)
	if err != nil || w.spares(ctx, group, Refused, refusal(group, pod)) || !w.sendsBack(key, pod) {
		return
	}
	// Members that are made from now on belong to the next start.
	bound, waiting := w.known(key)
	ofStart := sets.New[types.UID]()
	for _, member := range slices.Concat(bound, waiting) {
		ofStart.Insert(member.UID)
	}
	w.Timing.Beside(func() { w.evictStart(ctx, key, ofStart, pod) })
	// The informer may not show the last bindings yet.
	w.Timing.AfterFunc(w.Timing.Settle, func() { w.evictStart(ctx, key, ofStart, pod) })
}

// sendsBack reports whether the gang of a refused member is starting, and forgets its record then: it will start again.
// A kubelet's refusal comes by another informer than the bindings, and can be there first: then there is no record. Nor
// is there one if another refused member has sent the gang back.
func (w *watch) sendsBack(key types.NamespacedName, refused *corev1.Pod) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.gangs[key]
	if w.sentBack[key].Has(refused.UID) || r != nil && r.inherited || w.Clocks.Left(key, w.Limits.Grace) == 0 {
		return false
	}
	w.sentBack[key] = sets.New(refused.UID)
	if r != nil {
		w.sentBack[key] = w.sentBack[key].Union(sets.KeySet(r.bound))
	}
	delete(w.gangs, key)
	return true
}

// succeeds notes that a member has succeeded: its pod may be deleted before it is asked for.
func (w *watch) succeeds(key types.NamespacedName, pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.gangs[key]; r != nil && len(r.bound) > 0 {
		r.succeeded.Insert(pod.UID)
	}
}

// evictStart evicts the refused member and those of the same start that have a node.
func (w *watch) evictStart(
	ctx context.Context,
	key types.NamespacedName,
	ofStart sets.Set[types.UID],
	refused *corev1.Pod,
) {
	group, err := w.groups.PodGroups(key.Namespace).Get(key.Name)
	if err != nil || needed(group) == 0 {
		return
	}
	bound, _ := w.known(key)
	leave := slices.DeleteFunc(bound, func(pod *corev1.Pod) bool {
		return !ofStart.Has(pod.UID) || pod.Status.Phase == corev1.PodSucceeded
	})
	if len(leave) == 0 {
		return
	}
	w.evict(ctx, group, append(leave, refused), Refused, refusal(group, refused))
}

func refusal(group *schedulingv1beta1.PodGroup, refused *corev1.Pod) string {
	return fmt.Sprintf(
		"node %s refused member %s of gang %s: %s",
		refused.Spec.NodeName,
		refused.Name,
		group.Name,
		refused.Status.Reason,
	)
}
