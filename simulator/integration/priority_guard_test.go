package integration_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// The chart's PriorityClass is before all gangs and evicts them, so a tenant with every right in a namespace creates
// neither pods nor gangs of it, and no controller does so for a tenant. All writes are dry runs.
func TestPriority_TheClassOfLockstepIsForItsPods(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	client := tenant(t, namespace)
	const refusal = "PriorityClass lockstep is for the pods of lockstep-scheduler and lockstep-controller"
	testcluster.Within(t, 10*time.Second, "the tenant's role", func() bool {
		return createPod(t, client, namespace, "", "") == nil
	})
	for name, by := range map[string]kubernetes.Interface{"a tenant": client, "a controller": shared.Client} {
		t.Run(name, func(t *testing.T) {
			wantForbidden(t, createPod(t, by, namespace, "lockstep", ""), refusal)
			wantForbidden(t, createGang(t, by, namespace, "lockstep"), refusal)
		})
	}
	if err := createPod(t, shared.Client, render.Default().Namespace, "lockstep", ""); err != nil {
		t.Errorf("a pod of Lockstep's own cannot be created: %v", err)
	}
}

// Kubernetes lets a tenant name its own classes, which are before all gangs, too. Lockstep places nothing of them but
// in kube-system, and leaves what others place alone. All writes are dry runs.
func TestPriority_SystemClassesAreNotForTenants(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	client := tenant(t, namespace)
	const refusal = "would be before all gangs and evict them"
	testcluster.Within(t, 10*time.Second, "the tenant's role", func() bool {
		return createPod(t, client, namespace, "", "lockstep-scheduler") == nil
	})
	for _, class := range []string{"system-cluster-critical", "system-node-critical"} {
		wantForbidden(t, createPod(t, client, namespace, class, "lockstep-scheduler"), refusal)
		if err := createGang(t, client, namespace, class); err == nil {
			t.Errorf("a gang of class %s is created", class)
		}
		if err := createPod(t, client, namespace, class, "default-scheduler"); err != nil {
			t.Errorf("a pod of class %s of another scheduler: %v", class, err)
		}
		if err := createPod(t, shared.Client, metav1.NamespaceSystem, class, "lockstep-scheduler"); err != nil {
			t.Errorf("a pod of class %s in kube-system: %v", class, err)
		}
	}
}

// createPod creates a pod of a class, as a dry run.
func createPod(t *testing.T, by kubernetes.Interface, namespace, class, scheduler string) error {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "try"}, Spec: corev1.PodSpec{
		PriorityClassName: class,
		SchedulerName:     scheduler,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   new(true),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "try", Image: "none",
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}}
	_, err := by.CoreV1().Pods(namespace).
		Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// createGang creates a PodGroup of a class, as a dry run.
func createGang(t *testing.T, by kubernetes.Interface, namespace, class string) error {
	t.Helper()
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "try"},
		Spec: schedulingv1beta1.PodGroupSpec{
			PriorityClassName: class,
			SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
				Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1},
			},
		},
	}
	_, err := by.SchedulingV1beta1().PodGroups(namespace).
		Create(t.Context(), group, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}
