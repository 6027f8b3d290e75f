package podgrouper

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/scheduler/dialects"
	"github.com/lockstep-project/lockstep/topology"
)

// stated are the annotations that say how marks were read.
func stated() []string {
	return []string{
		dialects.AnnotationDialect, dialects.AnnotationRow, dialects.AnnotationSchedulers, topology.AnnotationOnLoss,
	}
}

// wanted returns the PodGroup that marked pods, at least one, and the object behind their mark ask for.
func (g *Grouper) wanted(mark dialects.Mark, pods []*corev1.Pod, from *source) (*schedulingv1beta1.PodGroup, error) {
	pod := pods[0]
	var content map[string]any
	if from != nil {
		content = from.content
	}
	group, err := mark.Describe(pod, content)
	if err != nil {
		return nil, fmt.Errorf("reading gang %s: %w", mark.Group, err)
	}
	annotations, err := g.marks.Annotations(mark)
	if err != nil {
		return nil, fmt.Errorf("reading gang %s: %w", mark.Group, err)
	}
	maps.Copy(annotations, group.Wishes)
	annotations[topology.AnnotationOnLoss] = string(mark.LossOf(pods))
	made := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: mark.PodGroup, Annotations: annotations, OwnerReferences: ownedBy(from),
			Labels: sweepOf(pod),
		},
		Spec: schedulingv1beta1.PodGroupSpec{
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
				Gang: &schedulingv1beta1.GangSchedulingPolicy{
					MinCount: int32(group.Minimum),
				}, //nolint:gosec // Describe bounds it
			},
			// With one member less, no part of it could continue, whatever preempts.
			DisruptionMode:    &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}},
			PriorityClassName: pod.Spec.PriorityClassName,
		},
	}
	if g.api == gangapi.Resources {
		made.Finalizers = []string{gangapi.Finalizer}
	}
	return made, nil
}

// sweepOf returns the labels of the PodGroup of a pod: the sweep that the pod names, nil for none.
func sweepOf(pod *corev1.Pod) map[string]string {
	name := pod.Labels[topology.LabelSweep]
	if name == "" {
		return nil
	}
	return map[string]string{topology.LabelSweep: name}
}

func (g *Grouper) create(ctx context.Context, wants *schedulingv1beta1.PodGroup) error {
	if _, err := g.client.SchedulingV1beta1().
		PodGroups(wants.Namespace).
		Create(ctx, wants, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("creating PodGroup %s: %w", wants.Name, err)
	}
	return nil
}

// delete deletes a PodGroup that has no members, unless it is another one by now.
func (g *Grouper) delete(ctx context.Context, now *schedulingv1beta1.PodGroup) error {
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &now.UID}}
	err := g.client.SchedulingV1beta1().PodGroups(now.Namespace).Delete(ctx, now.Name, options)
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting PodGroup %s: %w", now.Name, err)
	}
	return nil
}

// change corrects the minimum and the wishes of a PodGroup. All else cannot change.
func (g *Grouper) change(ctx context.Context, now, wants *schedulingv1beta1.PodGroup) error {
	patch := difference(now, wants)
	if patch == nil {
		return nil
	}
	content, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding a change of PodGroup %s: %w", now.Name, err)
	}
	_, err = g.client.SchedulingV1beta1().PodGroups(now.Namespace).
		Patch(ctx, now.Name, types.MergePatchType, content, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("changing PodGroup %s: %w", now.Name, err)
	}
	return nil
}

// difference returns the merge patch (RFC 7386) from a PodGroup to the one that is wanted; nil for none.
func difference(now, wants *schedulingv1beta1.PodGroup) map[string]any {
	annotations := map[string]any{}
	for _, key := range append(dialects.Wishes(), stated()...) {
		before, had := now.Annotations[key]
		after, has := wants.Annotations[key]
		switch {
		case has && (!had || before != after):
			annotations[key] = after
		case had && !has:
			annotations[key] = nil
		}
	}
	patch := map[string]any{}
	if len(annotations) > 0 {
		patch["metadata"] = map[string]any{"annotations": annotations}
	}
	minimum := wants.Spec.SchedulingPolicy.Gang.MinCount
	if minimum != ptr.Deref(now.Spec.SchedulingPolicy.Gang, schedulingv1beta1.GangSchedulingPolicy{}).MinCount {
		patch["spec"] = map[string]any{"schedulingPolicy": map[string]any{"gang": map[string]any{"minCount": minimum}}}
	}
	if len(patch) == 0 {
		return nil
	}
	return patch
}
