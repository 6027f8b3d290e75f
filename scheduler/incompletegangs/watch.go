// Package incompletegangs sees to it that no gang stays half bound. The barriers of gangpermit leave two ways to get there: the
// binding of one member fails for longer than the grace, or the scheduler ends between two bindings and what is left does
// not fit when it is back. A third way is the node's: a kubelet refuses a member at its start, because somebody else's pod
// was faster (OutOfcpu and the like). Then the members that are bound are evicted, and the job's own policy for disruptions
// starts the gang again, whole.
//
// A gang that was whole once and lost members is another matter: what happens then is for the job to say. But if the members
// that it has made in their place get no node for a long time, the others are evicted too: they hold devices and do nothing.
package incompletegangs

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1beta1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/eviction"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
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

// Patience is how long a gang may wait for its members, measured from when we see what it lacks.
type Patience struct {
	// Start is how long it may be half bound, Repair how long one that ran may lack members that it needs.
	Start, Repair time.Duration
}

// watch follows the gangs of one scheduler.
type watch struct {
	client        kubernetes.Interface
	groups        schedulinglisters.PodGroupLister
	schedulerName string
	patience      Patience
	timing        timing.Timing
	acts          func() bool
	abandon       func(types.NamespacedName, []*corev1.Pod)

	mu    sync.Mutex
	gangs map[types.NamespacedName]*record
}

// record is what is known about one gang.
type record struct {
	bound sets.Set[types.UID]
	// whole is set once all needed members were bound.
	whole bool
	// lost is when it lost a member that it needs, if it was whole before; zero if it is whole.
	lost time.Time
	// inherited is set if members were bound before we saw them: it may have been whole already.
	inherited bool
	// due is set while a check is under way.
	due bool
	// began is when we saw the first member get its node.
	began time.Time
}

// Watch watches the handle's informers until the context ends. Nobody is evicted unless acts says so: a scheduler that stands by for another one sees all that it does,
// a little later, and would take its next start for the last one. abandon is called before a gang's members are evicted.
func Watch(
	ctx context.Context, handle fwk.Handle, patience Patience, t timing.Timing,
	acts func() bool, abandon func(types.NamespacedName, []*corev1.Pod),
) error {
	groups := handle.SharedInformerFactory().Scheduling().V1beta1().PodGroups()
	w := &watch{
		client: handle.ClientSet(), groups: groups.Lister(), schedulerName: handle.ProfileName(),
		patience: patience, timing: t, acts: acts, abandon: abandon, gangs: make(map[types.NamespacedName]*record),
	}
	_, err := handle.SharedInformerFactory().
		Core().
		V1().
		Pods().
		Informer().
		AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { w.changed(ctx, nil, obj) },
			UpdateFunc: func(old, obj any) { w.changed(ctx, old, obj) },
			DeleteFunc: func(obj any) { w.gone(ctx, obj) },
		})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	if _, err := groups.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: w.forget}); err != nil {
		return fmt.Errorf("watching PodGroups: %w", err)
	}
	return nil
}

// changed follows a pod that got a node, or that ended.
func (w *watch) changed(ctx context.Context, old, obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || pod.Spec.SchedulerName != w.schedulerName {
		return
	}
	before, _ := old.(*corev1.Pod)
	if !holds(pod) {
		w.gone(ctx, pod)
		if before != nil && !WasRefused(before) && WasRefused(pod) {
			w.refused(ctx, pod)
		}
		return
	}
	if before != nil && before.Spec.NodeName != "" {
		return
	}
	key, ok := snapshot.GroupOf(pod)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.gangs[key]
	if r == nil {
		r = &record{bound: sets.New[types.UID](), began: w.timing.Clock.Now()}
		w.gangs[key] = r
	}
	r.bound.Insert(pod.UID)
	r.inherited = r.inherited || before == nil
	if group, err := w.groups.PodGroups(key.Namespace).Get(key.Name); err == nil && r.bound.Len() >= needed(group) {
		first := !r.whole
		r.whole, r.lost = true, time.Time{}
		if first && !r.inherited && needed(group) > 0 {
			metrics.GangWait.Observe(w.timing.Clock.Since(snapshot.QueuedAt(group)).Seconds())
		}
		return
	}
	w.later(ctx, key, r)
}

// later checks the gang when its patience is over, unless a check is under way.
func (w *watch) later(ctx context.Context, key types.NamespacedName, r *record) {
	if r.due {
		return
	}
	r.due = true
	after := w.patience.Start
	if r.whole {
		// Once that is over, it is looked at again and again whether its job makes new members.
		after = max(w.patience.Repair-w.timing.Clock.Since(r.lost), w.patience.Start)
	}
	w.timing.AfterFunc(after, func() { w.check(ctx, key, r) })
}

// gone follows a pod that is deleted or ended.
func (w *watch) gone(ctx context.Context, obj any) {
	if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	key, ok := snapshot.GroupOf(pod)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.gangs[key]
	if r == nil || !r.bound.Has(pod.UID) {
		return
	}
	r.bound.Delete(pod.UID)
	if r.whole && r.lost.IsZero() && r.bound.Len() > 0 {
		r.lost = w.timing.Clock.Now()
		w.later(ctx, key, r)
	}
}

func (w *watch) forget(obj any) {
	if group, ok := snapshot.Deleted(obj); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.gangs, types.NamespacedName{Namespace: group.Namespace, Name: group.Name})
	}
}

// check evicts what is bound of a gang that is still not whole. Our cache may be late, so the API server is asked.
func (w *watch) check(ctx context.Context, key types.NamespacedName, r *record) {
	w.mu.Lock()
	r.due = false
	whole, lost := r.whole, r.lost
	over := whole && lost.IsZero() || w.gangs[key] != r || r.bound.Len() == 0
	w.mu.Unlock()
	if over || ctx.Err() != nil {
		return
	}
	if !w.acts() || whole && w.timing.Clock.Since(lost) < w.patience.Repair {
		w.again(ctx, key, r) // it may be ours by then, or over
		return
	}
	logger := klog.FromContext(ctx).WithValues("podGroup", key)
	group, err := w.groups.PodGroups(key.Namespace).Get(key.Name)
	if err != nil {
		return // it is gone, or not there yet: then more of its members are to come
	}
	list, err := w.client.CoreV1().Pods(key.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		logger.Error(err, "Looking for the members of a gang that is not whole")
		w.again(ctx, key, r)
		return
	}
	bound, waiting := members(list.Items, key)
	switch {
	case len(bound) == 0:
	case whole:
		w.repair(ctx, group, r, bound, waiting)
	case len(bound) >= needed(group):
		w.mu.Lock()
		r.whole = true
		w.mu.Unlock()
	case r.inherited && wasWhole(bound, waiting, needed(group)):
		w.mu.Lock()
		r.whole, r.lost = true, w.timing.Clock.Now()
		w.mu.Unlock()
		w.again(ctx, key, r)
	default:
		w.evict(
			ctx,
			group,
			bound,
			Incomplete,
			fmt.Sprintf("only %d of the %d members that gang %s needs got a node within %s",
				len(bound), needed(group), group.Name, w.patience.Start),
		)
		w.again(ctx, key, r) // until nothing is bound, or all
	}
}

func (w *watch) again(ctx context.Context, key types.NamespacedName, r *record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.later(ctx, key, r)
}

func (w *watch) evict(
	ctx context.Context, group *schedulingv1beta1.PodGroup, pods []*corev1.Pod, reason, message string,
) {
	logger := klog.FromContext(ctx).WithValues("podGroup", klog.KObj(group))
	logger.Info("Evicting the members of a gang that did not become whole", "reason", reason, "why", message)
	metrics.PartialGangs.Inc()
	w.abandon(types.NamespacedName{Namespace: group.Namespace, Name: group.Name}, pods)
	mark := eviction.Mark{Now: metav1.NewTime(w.timing.Clock.Now()), Reason: reason, Message: message}
	if err := eviction.MarkGroup(ctx, w.client, group, mark); err != nil {
		logger.Error(err, "Saying why a gang leaves")
	}
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodSucceeded {
			continue
		}
		if err := eviction.Evict(ctx, w.client, pod, mark); err != nil {
			logger.Error(err, "Evicting a member", "pod", klog.KObj(pod))
		}
	}
}

// needed is how many members have to be bound; a group that is no gang needs none.
func needed(group *schedulingv1beta1.PodGroup) int {
	if gang := group.Spec.SchedulingPolicy.Gang; gang != nil {
		return int(gang.MinCount)
	}
	return 0
}

// holds reports whether a pod with a node counts as there: one that succeeded has been there, and that is enough.
func holds(pod *corev1.Pod) bool {
	return pod.Status.Phase != corev1.PodFailed && pod.DeletionTimestamp == nil
}

func members(pods []corev1.Pod, key types.NamespacedName) (bound, waiting []*corev1.Pod) {
	for i := range pods {
		pod := &pods[i]
		of, ok := snapshot.GroupOf(pod)
		switch {
		case !ok || of != key || !holds(pod):
		case pod.Spec.NodeName != "":
			bound = append(bound, pod)
		default:
			waiting = append(waiting, pod)
		}
	}
	return bound, waiting
}

// wasWhole judges a gang whose start we did not see: all needed members exist before the first is bound, so if too few of
// those that wait are that old, the others replace members that ran.
func wasWhole(bound, waiting []*corev1.Pod, needed int) bool {
	first := slices.MinFunc(bound, func(a, b *corev1.Pod) int { return boundAt(a).Compare(boundAt(b)) })
	old := slices.DeleteFunc(waiting, func(p *corev1.Pod) bool {
		return p.CreationTimestamp.After(boundAt(first))
	})
	return len(bound)+len(old) < needed
}

// boundAt is when the pod got its node. Nothing before it could be known of a pod that does not say.
func boundAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}
