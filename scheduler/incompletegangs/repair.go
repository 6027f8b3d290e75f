package incompletegangs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/finished"
)

// longestBackoff is the longest time that a Job may take to make a failed pod again (MaxJobPodFailureBackOff of its
// controller).
const longestBackoff = 10 * time.Minute

// repair ends a gang that ran and lost members that it needs, if those that its job made in their place got no node in
// time, or if it made none for longer than any backoff. Members that have succeeded count as there.
func (w *watch) repair(
	ctx context.Context, group *schedulingv1beta1.PodGroup, r *record, bound, waiting []*corev1.Pod,
) {
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	missing := w.missing(r, needed(group), bound)
	if missing > len(waiting) {
		lost, guessed := w.loss(r)
		// The owner of the members may have deleted others that had succeeded, before this scheduler began. A Job
		// reports its own.
		unknown := guessed && !slices.ContainsFunc(bound, ofJob)
		if unknown || w.Timing.Clock.Since(lost) < w.Limits.Repair+longestBackoff {
			w.again(ctx, key, r)
			return
		}
		succeeded, err := w.succeededOf(ctx, group.Namespace, slices.Concat(bound, waiting))
		if err != nil {
			klog.FromContext(ctx).Error(err, "Failed to read the Jobs of an incomplete gang", "podGroup", key)
			w.again(ctx, key, r)
			return
		}
		if note := finished.Wanted(group, unfinished(bound, waiting), succeeded); note != (finished.Note{}) {
			missing = 0
		}
	}
	why := w.unrepaired(group.Name, missing, len(waiting))
	if missing > 0 && w.spares(ctx, group, Unrepaired, why) {
		w.again(ctx, key, r)
		return
	}
	w.mu.Lock()
	switch {
	case missing <= 0:
		r.lost = time.Time{}
	case w.gangs[key] == r: // and will start again
		delete(w.gangs, key)
	}
	w.mu.Unlock()
	if missing <= 0 {
		return
	}
	stay := w.evict(ctx, group, bound, Unrepaired, why)
	if len(stay) > 0 {
		w.resume(ctx, key, r, stay)
	}
}

func (w *watch) loss(r *record) (at time.Time, guessed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.lost, r.guessed
}

func ofJob(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && isJob(*owner)
}

func isJob(owner metav1.OwnerReference) bool {
	return owner.Kind == "Job" && owner.APIVersion == batchv1.SchemeGroupVersion.String()
}

// unrepaired returns the reason for which a gang leaves. made is the number of members that its job made in the place
// of the missing ones.
func (w *watch) unrepaired(gang string, missing, made int) string {
	if made < missing {
		return fmt.Sprintf(
			"%d of the members that gang %s needs were not made again within %s; the others would wait for them",
			missing, gang, w.Limits.Repair+longestBackoff)
	}
	return fmt.Sprintf("%d of the members that gang %s needs got no node within %s; all of it starts again",
		missing, gang, w.Limits.Repair)
}

// missing returns the number of members that the gang lacks. Those that have succeeded are not missing, whether their
// pods still exist or not.
func (w *watch) missing(r *record, needed int, bound []*corev1.Pod) int {
	w.mu.Lock()
	gone := r.succeeded.Clone()
	w.mu.Unlock()
	for _, pod := range bound {
		gone.Delete(pod.UID)
	}
	return needed - len(bound) - gone.Len()
}

// unfinished are the members that have not succeeded.
func unfinished(bound, waiting []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Concat(bound, waiting), func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded
	})
}

// mostJobs is the number of Jobs of one gang that are read. A user who may create pods can name any number of owners.
const mostJobs = 64

// succeededOf returns the number of succeeded pods of each Job, as the Jobs report it: they count those that were
// deleted since.
func (w *watch) succeededOf(ctx context.Context, namespace string, pods []*corev1.Pod) (map[types.UID]int, error) {
	owners, out := finished.Owners(pods), make(map[types.UID]int)
	uids := slices.Sorted(maps.Keys(owners))
	for _, uid := range uids[:min(len(uids), mostJobs)] {
		owner := owners[uid]
		if !isJob(owner) {
			continue
		}
		job, err := w.client.BatchV1().Jobs(namespace).Get(ctx, owner.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("reading Job %s: %w", owner.Name, err)
		case job.UID == uid:
			out[uid] = int(job.Status.Succeeded)
		}
	}
	return out, nil
}

// resume continues to watch a gang after an eviction that failed in part, so that the members that stay are evicted
// later. A gang that has started again meanwhile has a record of its own.
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
