package gangqueue

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// activate brings a gang back into the queue.
func (q *GangQueue) activate(key types.NamespacedName) {
	waiting := q.anyWaiting(key)
	group, err := q.handle.PodGroupManager().PodGroups().Get(key.Namespace, key.Name)
	if waiting == nil || err != nil || !q.complete(group) {
		q.lot.Release(key) // it cannot be asked, and must not keep others with its question from it
		return
	}
	q.handle.Activate(klog.Background(), map[string]*corev1.Pod{waiting.Name: waiting})
}

// shortly is when single pods are woken after a reservation was given back.
const shortly = 50 * time.Millisecond

// wakeSingles brings the refused pods that are in no gang back into the queue: they may have been kept off a place that is reserved no
// more.
func (q *GangQueue) wakeSingles() {
	q.mu.Lock()
	names := slices.Collect(maps.Keys(q.waiting.refused))
	q.mu.Unlock()
	waiting := make(map[string]*corev1.Pod, len(names))
	for _, name := range names {
		if pod, err := q.pods.Pods(name.Namespace).Get(name.Name); err == nil && pod.Spec.NodeName == "" {
			waiting[name.String()] = pod
		}
	}
	if len(waiting) > 0 {
		q.handle.Activate(klog.Background(), waiting)
	}
}

// podGone tells the lot of room that became free.
func (q *GangQueue) podGone(obj any) {
	if missed, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = missed.Obj
	}
	if pod, ok := obj.(*corev1.Pod); ok {
		q.leaves(pod)
		if pod.Spec.NodeName != "" {
			q.lot.Change()
		}
	}
}

// podChanged tells the lot of a pod that ended, which frees its room before it is deleted.
func (q *GangQueue) podChanged(old, obj any) {
	before, ok := old.(*corev1.Pod)
	after, same := obj.(*corev1.Pod)
	if ok && same && before.Spec.NodeName == "" && after.Spec.NodeName != "" {
		q.leaves(after)
	}
	if ok && same && after.Spec.NodeName != "" && !snapshot.Ended(before) && snapshot.Ended(after) {
		q.lot.Change()
	}
}

// nodeChanged tells the lot of a node that may take what it did not. Heartbeats change nothing that matters.
func (q *GangQueue) nodeChanged(old, obj any) {
	before, ok := old.(*corev1.Node)
	after, same := obj.(*corev1.Node)
	if !ok || !same {
		return
	}
	if !snapshot.SameMaintenance(before, after) || before.Spec.Unschedulable != after.Spec.Unschedulable ||
		!maps.Equal(before.Labels, after.Labels) ||
		!apiequality.Semantic.DeepEqual(before.Spec.Taints, after.Spec.Taints) ||
		!apiequality.Semantic.DeepEqual(before.Status.Allocatable, after.Status.Allocatable) {
		q.lot.Change()
	}
}
