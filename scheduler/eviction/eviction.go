// Package eviction removes a running pod in the way that Jobs understand: the condition DisruptionTarget first, so that its
// end counts as a disruption and not as a failure of what runs in it, then the deletion.
package eviction

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// Mark holds the condition and the annotations that a pod gets before its deletion.
type Mark struct {
	Now metav1.Time
	// Reason is a CamelCase word, Message a sentence for people.
	Reason, Message string
	// Annotations are added to those of the pod, in the same request; nil for none.
	Annotations map[string]string
}

// Evict marks the pod and deletes it, with the pod's own grace period: two requests. A pod that is gone, or another one of its name, is no
// error.
func Evict(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, mark Mark) error {
	metadata := map[string]any{"uid": pod.UID}
	if mark.Annotations != nil { // the API server takes them with the status, but owner references not
		metadata["annotations"] = mark.Annotations
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": metadata,
		"status": map[string]any{"conditions": []corev1.PodCondition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, ObservedGeneration: pod.Generation,
			LastTransitionTime: mark.Now, Reason: mark.Reason, Message: mark.Message,
		}}},
	})
	if err != nil {
		return fmt.Errorf("marking pod %s: %w", pod.Name, err)
	}
	pods := client.CoreV1().Pods(pod.Namespace)
	_, err = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("marking pod %s: %w", pod.Name, err)
	}
	err = pods.Delete(ctx, pod.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))})
	if err != nil && !gone(err) {
		return fmt.Errorf("deleting pod %s: %w", pod.Name, err)
	}
	return nil
}

// gone reports whether the pod is not there any more: a different UID is a conflict.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
