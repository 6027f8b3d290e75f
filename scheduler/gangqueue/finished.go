package gangqueue

import (
	"context"
	"maps"
	"slices"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/finished"
)

// wantedNote is the note that the gang should have about members that have succeeded. Most gangs lack none, and are asked nothing.
func (q *GangQueue) wantedNote(group *schedulingv1beta1.PodGroup, state fwk.PodGroupState) finished.Note {
	if state.AllPodsCount() >= finished.MinCount(group) {
		return finished.Note{}
	}
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	succeeded := q.endings.Succeeded(q.profile, key)
	if len(succeeded) == 0 {
		return finished.Note{}
	}
	present := slices.Concat(
		state.ScheduledPods(), slices.Collect(maps.Values(state.UnscheduledPods())))
	return finished.Wanted(group, present, succeeded)
}

// noteFinished corrects the note on a gang of which members wait. The group's update then lets them in.
func (q *GangQueue) noteFinished(group *schedulingv1beta1.PodGroup) {
	if group.Spec.SchedulingPolicy.Gang == nil || q.beside == nil || !q.acts() {
		return
	}
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	state, err := q.handle.PodGroupManager().PodGroupStates().Get(key.Namespace, key.Name)
	if err != nil {
		return
	}
	// Gangs that are being made come here once for each of their pods, so what is cheap is asked first.
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
