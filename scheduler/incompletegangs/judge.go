package incompletegangs

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/scheduler/finished"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// The reasons of the condition DisruptionTarget of evicted members.
const (
	// Incomplete says that the others got no node.
	Incomplete = "GangIncomplete"
	// Refused says that a kubelet refused a member.
	Refused = "GangMemberRefused"
	// Unrepaired says that members that were lost got no node again.
	Unrepaired = "GangNotRepaired"
)

// check evicts the bound members of a gang that is still not whole.
func (w *watch) check(ctx context.Context, key types.NamespacedName, r *record) {
	w.mu.Lock()
	r.due = false
	w.meter(r)
	whole, lost := r.whole, r.lost
	over := whole && lost.IsZero() || w.gangs[key] != r || len(r.bound) == 0
	w.mu.Unlock()
	if over || ctx.Err() != nil {
		return
	}
	if !w.mayEnd(key, r) || whole && w.Timing.Clock.Since(lost) < w.Limits.Repair ||
		!whole && w.Clocks.Left(key, w.grace(key)) > 0 {
		w.again(ctx, key, r) // it may be ours by then, or over
		return
	}
	group, err := w.groups.PodGroups(key.Namespace).Get(key.Name)
	if err != nil {
		return // it is deleted, or not there yet: then more of its members will arrive
	}
	bound, waiting, err := w.confirmed(ctx, key, needed(group))
	if err != nil {
		klog.FromContext(ctx).Error(err, "Confirming that members of a gang have no node", "podGroup", key)
		w.again(ctx, key, r)
		return
	}
	w.judge(ctx, group, r, bound, waiting)
}

// mayEnd reports whether this scheduler may evict the gang. One that has taken over gives each gang the patience that
// its own starts have.
func (w *watch) mayEnd(key types.NamespacedName, r *record) bool {
	acts := w.Acts()
	w.mu.Lock()
	stoodBy := r.stoodBy
	r.stoodBy = !acts
	w.mu.Unlock()
	if acts && stoodBy {
		w.Clocks.Restart(key)
		return false
	}
	return acts
}

func (w *watch) judge(ctx context.Context, group *schedulingv1beta1.PodGroup, r *record, bound, waiting []*corev1.Pod) {
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	w.mu.Lock()
	whole, inherited := r.whole, r.inherited
	w.mu.Unlock()
	switch {
	case len(bound) == 0:
	case whole:
		w.repair(ctx, group, r, bound, waiting)
	case len(bound) >= needed(group):
		w.mu.Lock()
		r.whole = true
		w.mu.Unlock()
	case inherited && wasWhole(bound, waiting, needed(group)):
		w.mu.Lock()
		r.whole, r.guessed, r.lost = true, true, w.Timing.Clock.Now()
		w.mu.Unlock()
		w.again(ctx, key, r)
	default:
		why := fmt.Sprintf("only %d of the %d members that gang %s needs have a node, and none got further within %s",
			len(bound), needed(group), group.Name, w.grace(key))
		if !w.spares(ctx, group, Incomplete, why) {
			w.evict(ctx, group, bound, Incomplete, why)
		}
		w.again(ctx, key, r) // until nothing is bound, or all
	}
}

func (w *watch) again(ctx context.Context, key types.NamespacedName, r *record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.later(ctx, key, r)
}

// evict evicts pods of a gang, and returns those whose eviction failed.
func (w *watch) evict(
	ctx context.Context, group *schedulingv1beta1.PodGroup, pods []*corev1.Pod, reason, message string,
) (stay []*corev1.Pod) {
	logger := klog.FromContext(ctx).WithValues("podGroup", klog.KObj(group))
	logger.Info("Evicting incomplete gang", "reason", reason, "why", message)
	metrics.PartialGangs.Inc()
	w.Abandon(types.NamespacedName{Namespace: group.Namespace, Name: group.Name}, pods)
	mark := eviction.Mark{Now: metav1.NewTime(w.Timing.Clock.Now()), Reason: reason, Message: message}
	if err := eviction.MarkGroup(ctx, w.client, group, mark); err != nil {
		logger.Error(err, "Failed to write on the PodGroup why its gang leaves")
	}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		if err := eviction.Evict(ctx, w.client, pod, mark); err != nil {
			logger.Error(err, "Evicting a member", "pod", klog.KObj(pod))
			stay = append(stay, pod)
		}
	}
	if len(stay) > 0 {
		w.Spare(types.NamespacedName{Namespace: group.Namespace, Name: group.Name}, stay)
	}
	return stay
}

// spares reports whether a gang retains its nodes, because nothing would create its members again, and records an Event
// if so.
func (w *watch) spares(ctx context.Context, group *schedulingv1beta1.PodGroup, reason, why string) bool {
	if !snapshot.Final(group) {
		return false
	}
	klog.FromContext(ctx).
		V(2).
		Info("Sparing incomplete gang", "podGroup", klog.KObj(group), "reason", reason, "why", why)
	w.recorder().Eventf(group, nil, corev1.EventTypeWarning, reason, "Sparing",
		"%s; they are not evicted, because nothing would create them again", why)
	return true
}

// needed returns the number of members that have to be bound, or to have succeeded; a group that is no gang needs none.
func needed(group *schedulingv1beta1.PodGroup) int { return finished.MinCount(group) }

// holds reports whether a pod with a node counts as there: one that succeeded has been there, and that is enough.
func holds(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodFailed && pod.DeletionTimestamp == nil
}

// known returns the members that the informers show: those with a node or that have succeeded, and those that wait for
// one.
func (w *watch) known(gang types.NamespacedName) (bound, waiting []*corev1.Pod) {
	bound = w.Ended.Succeeded(w.profile, gang)
	for _, pod := range members.Of(w.pods, gang) {
		switch {
		case !holds(pod):
		case pod.Spec.NodeName != "":
			bound = append(bound, pod)
		default:
			waiting = append(waiting, pod)
		}
	}
	return bound, waiting
}

// confirmed returns the result of known. If that makes the gang incomplete, the waiting members are read from the API
// server one by one, until enough of them have no node there either: the informers may be late.
func (w *watch) confirmed(
	ctx context.Context,
	gang types.NamespacedName,
	needed int,
) (bound, waiting []*corev1.Pod, err error) {
	bound, waiting = w.known(gang)
	unasked := waiting
	waiting = nil
	for len(bound) < needed && len(bound)+len(unasked) >= needed {
		pod := unasked[0]
		unasked = unasked[1:]
		now, err := w.client.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) || err == nil && now.UID != pod.UID:
		case err != nil:
			return nil, nil, fmt.Errorf("reading pod %s: %w", pod.Name, err)
		case !holds(now):
		case now.Spec.NodeName != "":
			bound = append(bound, now)
		default:
			waiting = append(waiting, now)
		}
	}
	return bound, append(waiting, unasked...), nil
}

// wasWhole reports whether a gang whose start this scheduler did not see can have been whole. All needed members exist
// before the first one is bound. So a waiting member that is younger than that replaces a lost one, and one that is as
// old never had a node. The gang was whole if it lost a member, and if those that are bound, replaced or not made again
// yet are as many as it needs.
func wasWhole(bound, waiting []*corev1.Pod, needed int) bool {
	first := slices.MinFunc(
		bound,
		func(a, b *corev1.Pod) int { return snapshot.BoundAt(a).Compare(snapshot.BoundAt(b)) },
	)
	neverBound := 0
	for _, pod := range waiting {
		if !pod.CreationTimestamp.After(snapshot.BoundAt(first)) {
			neverBound++
		}
	}
	lost := len(bound)+neverBound < needed
	members := max(len(bound)+len(waiting), needed)
	return lost && members-neverBound >= needed
}
