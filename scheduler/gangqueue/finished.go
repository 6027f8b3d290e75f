package gangqueue

import (
	"context"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/finished"
)

// wantedNote is the note that the gang should have about members that have succeeded. Most gangs lack none, and are
// asked nothing.
func (q *GangQueue) wantedNote(group *schedulingv1beta1.PodGroup, state fwk.PodGroupState) finished.Note {
	if state.AllPodsCount() >= finished.MinCount(group) {
		return finished.Note{}
	}
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	ended, told := q.endings.Succeeded(q.profile, key), q.gangs.told(key)
	if len(ended) == 0 && len(told) == 0 {
		return finished.Note{} // before its pods are looked at, which happens once for each of them while a gang is made
	}
	succeeded := make(map[types.UID]int)
	for _, pod := range ended {
		if owner := metav1.GetControllerOf(pod); owner != nil {
			succeeded[owner.UID]++
		}
	}
	for job, count := range told { // a Job also counts succeeded pods that are deleted
		succeeded[job] = max(succeeded[job], count)
	}
	return finished.Wanted(group, presentIn(state), succeeded)
}

// presentIn are the pods of a gang that have not ended.
func presentIn(state fwk.PodGroupState) []*corev1.Pod {
	return slices.Concat(state.ScheduledPods(), slices.Collect(maps.Values(state.UnscheduledPods())))
}

// mostJobs is the number of Jobs of one gang that are read. A user who may create pods can name any number of owners.
const mostJobs = 64

// askJobs reads the Jobs of an incomplete gang with waiting members. Only the Jobs count succeeded pods that were
// deleted since. It is called half a minute after the gang became incomplete: most gangs are complete by then, and cost
// no request.
func (q *GangQueue) askJobs(group *schedulingv1beta1.PodGroup, state fwk.PodGroupState) {
	if len(state.UnscheduledPods()) == 0 || q.beside == nil {
		return
	}
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	owners := finished.Owners(presentIn(state))
	q.beside(func(ctx context.Context) {
		jobs := slices.Sorted(maps.Keys(owners))
		for _, uid := range jobs[:min(len(jobs), mostJobs)] {
			owner := owners[uid]
			if owner.Kind != "Job" || owner.APIVersion != batchv1.SchemeGroupVersion.String() {
				continue
			}
			job, err := q.handle.ClientSet().BatchV1().Jobs(group.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
			case err != nil:
				klog.FromContext(ctx).
					Error(err, "Asking how many pods of a Job have succeeded", "podGroup", klog.KObj(group))
				q.watchMembers(key) // and ask again
			case job.UID == uid:
				q.gangs.learn(key, uid, int(job.Status.Succeeded))
			}
		}
		q.noteFinished(group)
	})
}

// noteFinished corrects the note on a gang with waiting members. The group's update then admits them.
func (q *GangQueue) noteFinished(group *schedulingv1beta1.PodGroup) {
	if group.Spec.SchedulingPolicy.Gang == nil || q.beside == nil || !q.acts() {
		return
	}
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	state, err := q.handle.PodGroupManager().PodGroupStates().Get(key.Namespace, key.Name)
	if err != nil {
		return
	}
	// Gangs that are being created get here once for each of their pods, so the cheap checks run first.
	note := q.wantedNote(group, state)
	if note == finished.On(group) || len(state.UnscheduledPods()) == 0 || !q.gangs.beginNote(key) {
		return
	}
	q.beside(func(ctx context.Context) {
		defer q.gangs.endNote(key)
		if err := finished.Write(ctx, q.handle.ClientSet(), group, note); err != nil {
			klog.FromContext(ctx).
				Error(err, "Letting a gang go on without its finished members", "podGroup", klog.KObj(group))
		}
	})
}

// told returns a copy of the numbers of succeeded pods that a gang's Jobs reported; nil for none.
func (g *gangs) told(key types.NamespacedName) map[types.UID]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.succeeded[key])
}

// learn remembers the number of succeeded pods of a Job, until its group is deleted.
func (g *gangs) learn(key types.NamespacedName, job types.UID, succeeded int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.succeeded[key] == nil {
		g.succeeded[key] = make(map[types.UID]int, 1)
	}
	g.succeeded[key][job] = succeeded
}

// beginNote reports whether no note is being written about the gang, and that one is from now on.
func (g *gangs) beginNote(key types.NamespacedName) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.noting.Has(key) {
		return false
	}
	g.noting.Insert(key)
	return true
}

func (g *gangs) endNote(key types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.noting.Delete(key)
}
