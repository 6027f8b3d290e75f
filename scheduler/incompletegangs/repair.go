package incompletegangs

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
)

// repair ends a gang that ran, lost members that it needs, and made others in their place that got no node in time. As long as it
// makes none, that is between it and its job. Those that are complete already count as there.
func (w *watch) repair(
	ctx context.Context, group *schedulingv1beta1.PodGroup, r *record, bound, waiting []*corev1.Pod,
) {
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	missing := needed(group) - len(bound)
	if missing <= 0 || len(waiting) < missing {
		w.mu.Lock()
		if missing <= 0 {
			r.lost = time.Time{}
		}
		w.mu.Unlock()
		if missing > 0 {
			w.again(ctx, key, r)
		}
		return
	}
	w.mu.Lock()
	if w.gangs[key] == r { // and will start again
		delete(w.gangs, key)
	}
	w.mu.Unlock()
	stay := w.evict(ctx, group, bound, Unrepaired, fmt.Sprintf(
		"%d of the members that gang %s needs got no node within %s; all of it starts again",
		missing, group.Name, w.Limits.Repair))
	if len(stay) > 0 {
		w.resume(ctx, key, r, stay)
	}
}

// resume goes on watching a gang after an eviction that failed in part, so that those who stay are evicted later. One that has started again meanwhile
// has a record of its own.
func (w *watch) resume(ctx context.Context, key types.NamespacedName, r *record, stay []*corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gangs[key] != nil {
		return
	}
	w.meter(r)
	left := make(map[types.UID]int64, len(stay))
	r.held = 0
	for _, pod := range stay {
		left[pod.UID] = r.bound[pod.UID]
		r.held += left[pod.UID]
	}
	r.bound = left
	w.gangs[key] = r
	w.later(ctx, key, r)
}
