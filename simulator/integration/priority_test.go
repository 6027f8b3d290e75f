package integration_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// prioritized is a TrainJob of two ranks that names its priority class.
func prioritized(namespace, name, class string) string {
	return `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: ` + name + `
  namespace: ` + namespace + `
  annotations: {lockstep.dev/gang: "on", lockstep.dev/priority-class: ` + class + `, simulator.lockstep.dev/run-time: 10m}
spec: {runtimeRef: {name: torch-distributed}, trainer: {numNodes: 2}}
`
}

// A job has the priority that it names: one that exists, and is not Kubernetes' own, and as much of it as its namespace
// may have.
func TestPriority_AJobNamesItsClass(t *testing.T) {
	namespace, poor := namespaceOf(t), namespaceOf(t)+"-poor"
	makeNamespace(t, namespace)
	makeNamespace(t, poor)
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: "named-by-jobs"}, Value: 77}
	if _, err := shared.Client.SchedulingV1().
		PriorityClasses().
		Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none-of-it"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")},
		ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{
				ScopeName: corev1.ResourceQuotaScopePriorityClass,
				Operator:  corev1.ScopeSelectorOpIn,
				Values:    []string{class.Name},
			},
		}},
	}}
	limit(t, poor, quota)
	for refused, why := range map[string]string{
		"nobodys":              `PriorityClass "nobodys" doesn't exist`,
		"system-node-critical": "must be the name of a PriorityClass that is not lockstep and does not start with system-",
	} {
		_, err := shared.Dynamic.Resource(trainJobs).Namespace(namespace).
			Create(t.Context(), objectOf(t, prioritized(namespace, "refused", refused)), metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "metadata.annotations[lockstep.dev/priority-class]") ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("class %s: error %v, want %s", refused, err, why)
		}
	}
	kept(t, trainJobs, prioritized(poor, "beyond", class.Name))
	submitMore(t, prioritized(namespace, "urgent", class.Name))
	for _, pod := range newRunners(t, namespace, "urgent", 2, nil) {
		if pod.Spec.PriorityClassName != class.Name || *pod.Spec.Priority != class.Value {
			t.Errorf("pod %s has class %q and priority %d", pod.Name, pod.Spec.PriorityClassName, *pod.Spec.Priority)
		}
	}
	group, err := shared.Client.SchedulingV1beta1().PodGroups(namespace).Get(t.Context(), "urgent", metav1.GetOptions{})
	if err != nil || group.Spec.PriorityClassName != class.Name {
		t.Errorf("the group has class %q (%v)", group.Spec.PriorityClassName, err)
	}
	for _, pod := range podsOf(t.Context(), t, poor, "beyond") {
		t.Errorf("pod %s of class %q runs beyond the quota", pod.Name, pod.Spec.PriorityClassName)
	}
	testcluster.Within(t, 20*time.Second, "the quota's refusal", func() bool {
		events, err := shared.Client.CoreV1().
			Events(poor).
			List(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=Job"})
		if err != nil {
			return false
		}
		for _, event := range events.Items {
			if strings.Contains(event.Message, "exceeded quota: none-of-it") {
				return true
			}
		}
		return false
	})
	testcluster.Within(t, 20*time.Second, "the job says that it has no pods", func() bool {
		said := schedulingOf(t, poor, "beyond")
		return said.Phase == trainerv1alpha1.PhaseWaiting &&
			said.Reason == "no pod of node is created: see the Events of Job beyond-node-0 and of JobSet beyond"
	})
	testcluster.Within(t, 90*time.Second, "an Event that says so", func() bool {
		return slices.Contains(toldOf(t, poor, "beyond"), "NoPods")
	})
}

// limit creates a quota, with the status that the controller of quotas, which does not run here, would give it:
// admission reads that.
func limit(t *testing.T, namespace string, quota *corev1.ResourceQuota) {
	t.Helper()
	quotas := shared.Client.CoreV1().ResourceQuotas(namespace)
	created, err := quotas.Create(t.Context(), quota, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	created.Status = corev1.ResourceQuotaStatus{
		Hard: quota.Spec.Hard,
		Used: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")},
	}
	if _, err := quotas.UpdateStatus(t.Context(), created, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "try"}, Spec: corev1.PodSpec{
		PriorityClassName: quota.Spec.ScopeSelector.MatchExpressions[0].Values[0],
		Containers:        []corev1.Container{{Name: "try", Image: "none"}},
	}}
	testcluster.Within(t, 20*time.Second, "admission that knows the quota", func() bool {
		_, err := shared.Client.CoreV1().Pods(namespace).
			Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), "exceeded quota")
	})
}
