// Package incompletegangs sees to it that no gang stays half bound.
//
// The barriers of gangpermit leave three ways to get there: the binding of a member fails until the gang's patience is
// over; the scheduler ends between two bindings, and the remaining members do not fit after its restart; a kubelet
// refuses a member at its start, because another scheduler's pod was faster (OutOfcpu and the like). The members that
// are bound are evicted then, and the job's own policy for disruptions starts the gang again, whole.
//
// A gang that was whole once and lost members is left to its job. But if the members that the job has made in their
// place get no node for a long time, or if it makes none for longer than any backoff, the others are evicted too: they
// hold devices and do nothing. So are those of a gang that later needs more members than it had.
package incompletegangs

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	schedulinglisters "k8s.io/client-go/listers/scheduling/v1beta1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/metrics"
	"github.com/lockstep-project/lockstep/scheduler/patience"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// Parts are shared by the watch and other parts of its scheduler.
type Parts struct {
	// Ended reports pods that end; nil if the scheduler's own informer does.
	Ended  *members.Ended
	Limits patience.Limits
	// Clocks are those of gangpermit: a binding that is about to follow counts as progress.
	Clocks *patience.Clocks
	Timing timing.Timing
	// Accelerators are the resources that count as accelerators.
	Accelerators []corev1.ResourceName
	// Acts reports whether this scheduler decides about gangs. One that stands by sees all that the other one does, a
	// little later, and evicts nothing.
	Acts func() bool
	// Abandon is called before the members of a gang are evicted.
	Abandon func(gang types.NamespacedName, evicted []*corev1.Pod)
	// Spare is called after that with those whose eviction failed: they keep their nodes until it is tried again, or
	// all others have theirs.
	Spare func(gang types.NamespacedName, stay []*corev1.Pod)
}

// watch follows the gangs of one profile.
type watch struct {
	Parts

	client  kubernetes.Interface
	groups  schedulinglisters.PodGroupLister
	pods    cache.Indexer
	profile string
	// recorder returns the recorder of Events about incomplete gangs that are not evicted.
	recorder func() events.EventRecorderLogger

	mu    sync.Mutex
	gangs map[types.NamespacedName]*record
	// sentBack holds, by gang, the members of its last start in which a kubelet refused one: that one and the bound.
	sentBack map[types.NamespacedName]sets.Set[types.UID]
}

// record is the known state of one gang.
type record struct {
	// bound are the members that have a node, with the accelerators that each holds.
	bound map[types.UID]int64
	// held is their sum.
	held int64
	// metered is the time up to which metrics.IncompleteHeld counts the idle accelerators of the gang.
	metered time.Time
	// whole is set once all needed members were bound.
	whole bool
	// lost is the time at which it lost a member that it needs, or began to need more, if it was whole before; zero if
	// it is whole.
	lost time.Time
	// inherited is set if members were bound before we saw them: it may have been whole already.
	inherited bool
	// guessed is set if it was inferred to be whole from the members that were left when it was first seen.
	guessed bool
	// succeeded are members that have succeeded since the gang was last without any on a node.
	succeeded sets.Set[types.UID]
	// due is set while a check is scheduled, until it begins.
	due bool
	// stoodBy is set if the last check found another scheduler in charge.
	stoodBy bool
	// startedBefore is set if the gang was whole at an earlier start: its wait is measured once.
	startedBefore bool
}

func newRecord() *record {
	return &record{bound: make(map[types.UID]int64), succeeded: sets.New[types.UID]()}
}

// Watch watches the handle's informers until the context ends. It must be called before they start.
func Watch(ctx context.Context, handle fwk.Handle, parts Parts) error {
	groups := handle.SharedInformerFactory().Scheduling().V1beta1().PodGroups()
	pods := handle.SharedInformerFactory().Core().V1().Pods().Informer()
	if err := members.Index(pods); err != nil {
		return err
	}
	w := &watch{
		Parts:   parts,
		client:  handle.ClientSet(),
		groups:  groups.Lister(),
		pods:    pods.GetIndexer(),
		profile: handle.ProfileName(), recorder: handle.EventRecorder,
		gangs: make(map[types.NamespacedName]*record), sentBack: make(map[types.NamespacedName]sets.Set[types.UID]),
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { w.changed(ctx, nil, obj) },
		UpdateFunc: func(old, obj any) { w.changed(ctx, old, obj) },
		DeleteFunc: func(obj any) { w.gone(ctx, obj) },
	})
	if err != nil {
		return fmt.Errorf("watching pods: %w", err)
	}
	if err := parts.Ended.Follow(ctx, handle, func(pod *corev1.Pod) { w.ended(ctx, pod) }); err != nil {
		return err
	}
	if _, err := groups.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, obj any) { w.resized(ctx, obj) }, DeleteFunc: w.forget,
	}); err != nil {
		return fmt.Errorf("watching PodGroups: %w", err)
	}
	return nil
}

// changed follows a pod that got a node, or that ended.
func (w *watch) changed(ctx context.Context, old, obj any) {
	pod, ok := obj.(*corev1.Pod)
	if !ok || pod.Spec.NodeName == "" || pod.Spec.SchedulerName != w.profile {
		return
	}
	before, _ := old.(*corev1.Pod)
	if !holds(pod) {
		w.gone(ctx, pod)
		if before != nil && !WasRefused(before) {
			w.ended(ctx, pod)
		}
		return
	}
	if before != nil && before.Spec.NodeName != "" {
		return
	}
	if key, ok := snapshot.GroupOf(pod); ok {
		w.bound(ctx, key, pod, before)
	}
}

// bound follows a member that got its node. before is nil if it had one when it was first seen.
func (w *watch) bound(ctx context.Context, key types.NamespacedName, pod, before *corev1.Pod) {
	w.Clocks.Further(key, pod.UID, patience.Bound)
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.gangs[key]
	if r == nil {
		r = newRecord()
		w.gangs[key] = r
	}
	w.meter(r)
	r.held -= r.bound[pod.UID] // 0 unless it was seen before
	r.bound[pod.UID] = snapshot.Accelerators([]*corev1.Pod{pod}, w.Accelerators)
	r.held += r.bound[pod.UID]
	r.inherited = r.inherited || before == nil
	group, err := w.groups.PodGroups(key.Namespace).Get(key.Name)
	if err != nil || w.there(key, r) < needed(group) {
		w.later(ctx, key, r)
		return
	}
	first := !r.whole
	r.whole, r.guessed, r.lost = true, false, time.Time{}
	if first && !r.inherited && !r.startedBefore && needed(group) > 0 {
		metrics.GangWait.Observe(w.Timing.Clock.Since(snapshot.QueuedAt(group)).Seconds())
	}
}

// there returns the number of the gang's members that have a node or have succeeded.
func (w *watch) there(key types.NamespacedName, r *record) int {
	there := len(r.bound)
	for uid := range r.succeeded {
		if _, counted := r.bound[uid]; !counted {
			there++
		}
	}
	for _, pod := range w.Ended.Succeeded(w.profile, key) {
		if _, counted := r.bound[pod.UID]; !counted && !r.succeeded.Has(pod.UID) {
			there++
		}
	}
	return there
}

// meter adds the seconds that the gang's accelerators idled since it was last metered, if it was incomplete.
func (w *watch) meter(r *record) {
	now := w.Timing.Clock.Now()
	if incomplete := !r.whole || !r.lost.IsZero(); incomplete && !r.metered.IsZero() {
		metrics.IncompleteHeld.Add(float64(r.held) * now.Sub(r.metered).Seconds())
	}
	r.metered = now
}

// later schedules a check of the gang for the end of its patience, unless one is scheduled already.
func (w *watch) later(ctx context.Context, key types.NamespacedName, r *record) {
	if r.due {
		return
	}
	r.due = true
	after := max(w.Clocks.Left(key, w.grace(key)), leastPause)
	if r.whole {
		// After that, the check repeats every Limits.Grace until the job has made new members.
		after = max(w.Limits.Repair-w.Timing.Clock.Since(r.lost), w.Limits.Grace)
	}
	w.Timing.AfterFunc(after, func() { w.check(ctx, key, r) })
}

// leastPause is the least time between two checks of a gang.
const leastPause = 100 * time.Millisecond

// grace returns the time for which a half-bound gang may make no progress.
func (w *watch) grace(key types.NamespacedName) time.Duration {
	group, err := w.groups.PodGroups(key.Namespace).Get(key.Name)
	if err != nil {
		return w.Limits.Grace
	}
	return patience.Of(group, w.Limits.Grace)
}

// gone follows a pod that is deleted or ended.
func (w *watch) gone(ctx context.Context, obj any) {
	pod, ok := snapshot.ObjectOf[*corev1.Pod](obj)
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
	if r == nil {
		return
	}
	if _, had := r.bound[pod.UID]; !had {
		return
	}
	w.meter(r)
	r.held -= r.bound[pod.UID]
	delete(r.bound, pod.UID)
	if snapshot.Succeeded(pod) || snapshot.SucceededIn(w.Ended.Phase(pod), pod) {
		r.succeeded.Insert(pod.UID)
	}
	if len(r.bound) == 0 { // what follows is another start, and is judged as one
		again := newRecord()
		again.startedBefore = r.startedBefore || r.whole
		w.gangs[key] = again
		return
	}
	if r.whole && r.lost.IsZero() {
		r.lost = w.Timing.Clock.Now()
		w.later(ctx, key, r)
	}
}

// resized follows a gang that needs more members than before, or fewer: one that is not whole any more has lost no
// member, but is as useless.
func (w *watch) resized(ctx context.Context, obj any) {
	group, ok := obj.(*schedulingv1beta1.PodGroup)
	if !ok {
		return
	}
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.gangs[key]
	if r == nil || !r.whole {
		return
	}
	enough := w.there(key, r) >= needed(group)
	switch {
	case enough && !r.lost.IsZero():
		w.meter(r)
		r.lost = time.Time{}
	case !enough && r.lost.IsZero() && len(r.bound) > 0:
		w.meter(r)
		r.lost = w.Timing.Clock.Now()
		w.later(ctx, key, r)
	}
}

func (w *watch) forget(obj any) {
	if group, ok := snapshot.ObjectOf[*schedulingv1beta1.PodGroup](obj); ok {
		key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
		w.Clocks.Forget(key)
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.gangs, key)
		delete(w.sentBack, key)
	}
}
