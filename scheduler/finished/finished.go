// Package finished lets a gang continue without the members that have succeeded.
//
// A Job with some succeeded pods and a failed one makes that one again. Its PodGroup still states the number of members
// that start together, which succeeded ones never do again. So the scheduler notes on the group the number of missing
// members that need not arrive, and from then on sees the group with a minCount that is lower by these: this holds for
// all of kube-scheduler, whose own check of a placement cannot be had otherwise. The stored minCount is unchanged;
// the TrainJob controller lowers that of its own groups. A job that starts again as a whole makes pods of other owners,
// for which no member counts as finished.
package finished

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-project/lockstep/topology"
)

// Note says that some of the members that a gang needs by its minCount need not arrive. The zero value says that all
// have to.
type Note struct{ Finished, Of int32 }

// String is the note as the value of topology.AnnotationFinished, "" for the zero value.
func (n Note) String() string {
	if n == (Note{}) {
		return ""
	}
	return fmt.Sprintf("%d of %d", n.Finished, n.Of)
}

// On returns the note on a group, the zero value for one that cannot be read.
func On(group *schedulingv1beta1.PodGroup) Note {
	var n Note
	if _, err := fmt.Sscanf(
		group.Annotations[topology.AnnotationFinished],
		"%d of %d",
		&n.Finished,
		&n.Of,
	); err != nil ||
		n.Finished <= 0 ||
		n.Finished >= n.Of {
		return Note{}
	}
	return n
}

// Transform is for an informer of PodGroups: a group with a note needs fewer members, if the note is about the minCount
// that it has. It changes nothing that it has changed before.
func Transform(object any) (any, error) {
	group, ok := object.(*schedulingv1beta1.PodGroup)
	if !ok {
		return object, nil
	}
	group.ManagedFields = nil // as kube-scheduler's own informers do
	return Seen(group), nil
}

// Seen returns the group as the scheduler sees it. It does not change the group.
func Seen(group *schedulingv1beta1.PodGroup) *schedulingv1beta1.PodGroup {
	note, gang := On(group), group.Spec.SchedulingPolicy.Gang
	if gang == nil || note == (Note{}) || gang.MinCount != note.Of {
		return group
	}
	group = group.DeepCopy()
	group.Spec.SchedulingPolicy.Gang.MinCount -= note.Finished
	return group
}

// MinCount returns the number of members that a group declares to need, also if Transform has lowered it; 0 for a group
// that is no gang.
func MinCount(group *schedulingv1beta1.PodGroup) int {
	gang := group.Spec.SchedulingPolicy.Gang
	if gang == nil {
		return 0
	}
	if note := On(group); gang.MinCount == note.Of-note.Finished {
		return int(note.Of)
	}
	return int(gang.MinCount)
}

// Wanted returns the note that a gang should have. present are its pods that have not ended; succeeded is the number of
// succeeded pods of each owner, by the owner's UID.
func Wanted(group *schedulingv1beta1.PodGroup, present []*corev1.Pod, succeeded map[types.UID]int) Note {
	needed := MinCount(group)
	missing := needed - len(present)
	if missing <= 0 || len(present) == 0 {
		return Note{}
	}
	finished := 0
	for owner := range Owners(present) {
		finished += succeeded[owner]
	}
	if finished < missing {
		return Note{}
	}
	return Note{int32(missing), int32(needed)} //nolint:gosec // both are parts of an int32
}

// Owners returns the controllers of pods, by UID.
func Owners(pods []*corev1.Pod) map[types.UID]metav1.OwnerReference {
	owners := make(map[types.UID]metav1.OwnerReference)
	for _, pod := range pods {
		if owner := metav1.GetControllerOf(pod); owner != nil {
			owners[owner.UID] = *owner
		}
	}
	return owners
}

// Write puts a note on the group, or takes it away: one request. A group that is deleted already, or another one of its
// name, is no error.
func Write(ctx context.Context, client kubernetes.Interface, group *schedulingv1beta1.PodGroup, note Note) error {
	var value any
	if text := note.String(); text != "" {
		value = text
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": group.UID, "annotations": map[string]any{topology.AnnotationFinished: value},
	}})
	if err != nil {
		return fmt.Errorf("noting finished members of %s: %w", group.Name, err)
	}
	_, err = client.SchedulingV1beta1().PodGroups(group.Namespace).
		Patch(ctx, group.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("noting finished members of %s: %w", group.Name, err)
	}
	return nil
}
