package testcluster

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
)

// Ask asks the API server something, again if it says that it had no time to answer, as it does on a machine with too
// much to do. Any other error fails the test.
func Ask(t *testing.T, question func() error) {
	t.Helper()
	late := func(err error) bool { return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) }
	if err := retry.OnError(retry.DefaultRetry, late, question); err != nil {
		t.Fatal(err)
	}
}

// PodsOf lists the pods of a TrainJob.
func (s Cluster) PodsOf(ctx context.Context, t *testing.T, namespace, job string) []corev1.Pod {
	t.Helper()
	var found []corev1.Pod
	Ask(t, func() error {
		pods, err := s.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: "jobset.sigs.k8s.io/jobset-name=" + job,
		})
		if err != nil {
			return fmt.Errorf("listing the pods of %s: %w", job, err)
		}
		found = pods.Items
		return nil
	})
	return found
}

// Succeed sets pods to Succeeded, as their kubelets would.
func (s Cluster) Succeed(t *testing.T, pods []corev1.Pod) {
	t.Helper()
	for _, pod := range pods {
		Ask(t, func() error {
			_, err := s.Client.CoreV1().Pods(pod.Namespace).Patch(t.Context(), pod.Name, types.MergePatchType,
				[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
			if err != nil {
				return fmt.Errorf("ending pod %s: %w", pod.Name, err)
			}
			return nil
		})
	}
}
