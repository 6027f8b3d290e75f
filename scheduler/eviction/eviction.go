// Package eviction removes a running pod in the way that Jobs understand: the condition DisruptionTarget first, so that
// its end counts as a disruption and not as a failure of its program, then the deletion.
package eviction

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/lockstep-project/lockstep/topology/standing"
)

// Mark holds the condition and the annotations that a pod gets before its deletion.
type Mark struct {
	Now metav1.Time
	// Reason is a CamelCase word, Message a sentence for users.
	Reason, Message string
	// Annotations are added to those of the pod, in the same request; nil for none.
	Annotations map[string]string
}

// Evict marks the pod and deletes it, with the grace period of Grace: two requests. A pod that is deleted already, or
// another one of its name, is no error.
func Evict(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, mark Mark) error {
	if err := markPod(ctx, client, pod, mark); err != nil {
		return err
	}
	options := metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	own := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0)
	if grace := int64(Grace(pod) / time.Second); own > grace || lingers(pod) {
		options.GracePeriodSeconds = &grace
	}
	if err := client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options); err != nil && !gone(err) {
		return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
	}
	return nil
}

// markPod gives the pod the condition DisruptionTarget: one request. A pod that is deleted already, or another one of
// its name, is no error.
func markPod(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, mark Mark) error {
	return MarkPodAs(ctx, client, pod, corev1.DisruptionTarget, mark)
}

// MarkPodAs is MarkPod with another condition.
func MarkPodAs(
	ctx context.Context,
	client kubernetes.Interface,
	pod *corev1.Pod,
	condition corev1.PodConditionType,
	mark Mark,
) error {
	metadata := map[string]any{"uid": pod.UID}
	if mark.Annotations != nil { // the API server takes them with the status, but owner references not
		metadata["annotations"] = mark.Annotations
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": metadata,
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: condition, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
			LastTransitionTime: mark.Now, Reason: mark.Reason, Message: mark.Message,
		}}},
	})
	if err != nil {
		return fmt.Errorf("marking pod %s: %w", pod.Name, err)
	}
	_, err = client.CoreV1().Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !gone(err) {
		return fmt.Errorf("marking pod %s: %w", pod.Name, err)
	}
	return nil
}

// MarkGroup writes on a PodGroup that it is evicted, and has no place any more: one request. A group that is deleted
// already, or another one of its name, is no error.
func MarkGroup(ctx context.Context, client kubernetes.Interface, group *schedulingv1beta1.PodGroup, mark Mark) error {
	condition := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{
			Type: kind, Status: status, Reason: mark.Reason, Message: mark.Message,
			ObservedGeneration: group.Generation, LastTransitionTime: mark.Now,
		}
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": group.UID},
		"status": map[string]any{"conditions": []metav1.Condition{
			condition(schedulingv1beta1.DisruptionTarget, metav1.ConditionTrue),
			condition(standing.Placed, metav1.ConditionFalse),
		}},
	})
	if err != nil {
		return fmt.Errorf("marking PodGroup %s: %w", group.Name, err)
	}
	_, err = client.SchedulingV1beta1().PodGroups(group.Namespace).Patch(
		ctx, group.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !gone(err) {
		return fmt.Errorf("marking PodGroup %s: %w", group.Name, err)
	}
	return nil
}

// ByScheduler reports whether a scheduler evicted the pod: Lockstep's, whose reasons begin alike, or kube-scheduler's
// own preemption. It did so to give the pod's place to another one, or has seen to the pod's next place.
func ByScheduler(pod *corev1.Pod) bool {
	reason, disrupted := reasonOf(pod)
	return disrupted && (reason == corev1.PodReasonPreemptionByScheduler || strings.HasPrefix(reason, reasonPrefix))
}

// Disrupted reports whether the pod was evicted, by whatever component.
func Disrupted(pod *corev1.Pod) bool {
	_, disrupted := reasonOf(pod)
	return disrupted
}

func reasonOf(pod *corev1.Pod) (reason string, disrupted bool) {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue {
			return condition.Reason, true
		}
	}
	return "", false
}

// reasonPrefix begins the reasons of the evictions of gangs.
const reasonPrefix = "Gang"

// gone reports whether the pod is not there any more: a different UID is a conflict.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
