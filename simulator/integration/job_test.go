package integration_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// nativeJob makes an indexed Job of Kubernetes' own whose pods are a gang.
func nativeJob(t *testing.T, name string, size int32) {
	t.Helper()
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: size}
	if _, err := shared.Client.SchedulingV1beta1().
		PodGroups(namespace).
		Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: batchv1.JobSpec{
		Completions: &size, Parallelism: &size, CompletionMode: new(batchv1.IndexedCompletion),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"simulator.lockstep.dev/run-time": "10m"}},
			Spec: corev1.PodSpec{
				SchedulerName: ours, RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{
					{
						Name:  "main",
						Image: "sweep",
						Resources: corev1.ResourceRequirements{
							Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")},
						},
					},
				},
			},
		},
	}}
	gangapi.Join(&job.Spec.Template.ObjectMeta, &job.Spec.Template.Spec, name)
	if _, err := shared.Client.BatchV1().Jobs(namespace).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { discardJob(t, name) })
}

// discardJob deletes a Job and its gang, and waits until its pods are deleted, so that tests do not compete for
// machines.
func discardJob(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testcluster.Patience(time.Minute))
	defer cancel()
	namespace := namespaceOf(t)
	err := shared.Client.BatchV1().Jobs(namespace).
		Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)})
	if err != nil {
		t.Error(err)
	}
	for {
		pods, err := shared.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		if len(pods.Items) == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err := shared.Client.SchedulingV1beta1().
		PodGroups(namespace).
		Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

// runningOf waits until so many pods of a Job run.
func runningOf(t *testing.T, job string, want int) []corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	testcluster.Within(t, 60*time.Second, fmt.Sprintf("%d running pods of %s", want, job), func() bool {
		list, err := shared.Client.CoreV1().Pods(namespaceOf(t)).List(t.Context(), metav1.ListOptions{
			LabelSelector: batchv1.JobNameLabel + "=" + job,
		})
		if err != nil {
			t.Fatal(err)
		}
		pods = slices.DeleteFunc(list.Items, func(p corev1.Pod) bool {
			return p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil
		})
		return len(pods) == want
	})
	return pods
}

// Two pods of a native Job have succeeded, and the third fails: its Job makes it again, and it runs, although the gang
// needs three.
func TestNativeJob_GoesOnWithoutItsFinishedMembers(t *testing.T) {
	nativeJob(t, "sweep", 3)
	pods := runningOf(t, "sweep", 3)
	for i, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodSucceeded, corev1.PodFailed} {
		patch := fmt.Appendf(nil, `{"status":{"phase":%q}}`, phase)
		if _, err := shared.Client.CoreV1().Pods(namespaceOf(t)).
			Patch(t.Context(), pods[i].Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
			t.Fatal(err)
		}
	}
	again := runningOf(t, "sweep", 1)
	if again[0].UID == pods[2].UID ||
		again[0].Labels[batchv1.JobCompletionIndexAnnotation] != pods[2].Labels[batchv1.JobCompletionIndexAnnotation] {
		t.Errorf("%s runs, which does not replace the one that failed (%s)", again[0].Name, pods[2].Name)
	}
}
