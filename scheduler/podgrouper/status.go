package podgrouper

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/lockstep-project/lockstep/scheduler/dialects"
	"github.com/lockstep-project/lockstep/scheduler/members"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
)

// statusManager is the field manager of the statuses of foreign groups.
const statusManager = "lockstep-scheduler"

// statusPause lets changes gather: the members of a large gang start within seconds.
const statusPause = time.Second

// podUpdated looks at a gang whose member got a node, or runs, if its dialect says so in a status.
func (g *Grouper) podUpdated(old, now any) {
	before, ok := old.(*corev1.Pod)
	pod, same := now.(*corev1.Pod)
	if !ok || !same || before.Spec.NodeName == pod.Spec.NodeName && before.Status.Phase == pod.Status.Phase {
		return
	}
	mark, marked := g.marks.Read(pod)
	if key, member := snapshot.GroupOf(pod); marked && member && mark.Dialect.Status != nil {
		g.queue.AddAfter(key.String(), statusPause)
	}
}

// podEnded looks at a gang whose member has ended.
func (g *Grouper) podEnded(pod *corev1.Pod) {
	key, member := snapshot.GroupOf(pod)
	if !member {
		return
	}
	group, err := g.groups.PodGroups(key.Namespace).Get(key.Name)
	if err != nil {
		return
	}
	if dialect, known := g.dialectOf(group); known && dialect.Status != nil {
		g.queue.AddAfter(key.String(), statusPause)
	}
}

func (g *Grouper) dialectOf(group *schedulingv1beta1.PodGroup) (dialects.Dialect, bool) {
	return g.marks.ByName(group.Annotations[dialects.AnnotationDialect])
}

// tell writes the status of a gang's own object, if its dialect has one and nothing else writes it: a status that
// another scheduler or controller has written is left alone.
func (g *Grouper) tell(
	ctx context.Context,
	group *schedulingv1beta1.PodGroup,
	of dialects.Dialect,
	source *source,
) error {
	if of.Status == nil || source == nil || source.others || group.Spec.SchedulingPolicy.Gang == nil {
		return nil
	}
	minimum := int(group.Spec.SchedulingPolicy.Gang.MinCount)
	standing := dialects.StandingOf(minimum, group.CreationTimestamp.Time, g.membersOf(group)...)
	changes := of.Changes(source.status, standing)
	if len(changes) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": changes})
	if err != nil {
		return fmt.Errorf("encoding the status of %s: %w", source.reference.Name, err)
	}
	_, err = g.objects.Dynamic.Resource(source.id.resource).Namespace(source.id.namespace).Patch(
		ctx, source.id.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: statusManager}, "status")
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		// It is deleted, has no status, or has another one than we know.
		klog.FromContext(ctx).V(2).Info("Status of a gang's object cannot be written",
			"resource", source.id.resource.GroupResource(), "object", klog.KRef(source.id.namespace, source.id.name), "err", err)
		return nil
	case err != nil:
		return fmt.Errorf("writing the status of %s: %w", source.reference.Name, err)
	}
	return nil
}

// membersOf returns the members of a gang, those that have ended among them.
func (g *Grouper) membersOf(group *schedulingv1beta1.PodGroup) []*corev1.Pod {
	key := types.NamespacedName{Namespace: group.Namespace, Name: group.Name}
	all := g.ended.Of(key)
	known := make(map[types.UID]bool, len(all))
	for _, pod := range all {
		known[pod.UID] = true
	}
	for _, pod := range members.Of(g.pods, key) {
		if !known[pod.UID] { // else the informer shows its earlier state
			all = append(all, pod)
		}
	}
	return all
}
