package render_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/render"
)

// Kubernetes lets every namespace name its own classes, which are before all gangs. What Lockstep places has them in
// kube-system only, or where the administrator says; what others place is not looked at.
func TestPolicies_SystemPriorities(t *testing.T) {
	const refusal = "would be before all gangs and evict them"
	release := render.Default().Namespace
	pod := func(class, scheduler string) runtime.Object {
		return &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Name: "x"},
			Spec:       corev1.PodSpec{PriorityClassName: class, SchedulerName: scheduler},
		}
	}
	plugin := admissionOf(t, "systempriorities.lockstep.dev")
	by := func(namespace, class, scheduler, want string) {
		t.Helper()
		says(t, fmt.Sprintf("pod of class %q by %s in %s", class, scheduler, namespace), admit(t, plugin, write{
			by: tenant, namespace: namespace, kind: "Pod", resource: corev1.SchemeGroupVersion.WithResource("pods"),
			next: pod(class, scheduler),
		}), want)
	}
	by("team-a", "system-cluster-critical", "lockstep-scheduler", refusal)
	by("team-a", "system-node-critical", "lockstep-scheduler", "value systemPriorities.namespaces")
	by(release, "system-node-critical", "lockstep-scheduler", refusal)
	by("kube-system", "system-node-critical", "lockstep-scheduler", "")
	by("gpu-operator", "system-node-critical", "default-scheduler", "")
	by("team-a", "urgent", "lockstep-scheduler", "")
	by("team-a", "", "lockstep-scheduler", "")
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gangapi.Resources.Version().
			String(),
		"kind":     gangapi.Kind,
		"metadata": map[string]any{"name": "x"},
		"spec":     map[string]any{"priorityClassName": "system-cluster-critical"},
	}}
	for namespace, want := range map[string]string{"team-a": refusal, release: refusal, "kube-system": ""} {
		says(t, "group in "+namespace, admit(t, plugin, write{
			by: render.Default().
				Account(),
			namespace: namespace,
			kind:      gangapi.Kind,
			resource:  gangapi.Resources.Resource(),
			next:      group,
		}), want)
	}
}

// The class of Lockstep's own pods is before all gangs in the queue and evicts them all. Only pods of the release's
// namespace have it, whoever creates them: users name it, and controllers create pods and groups for users.
func TestPolicies_ComponentPriorities(t *testing.T) {
	plugin := admissionOf(t, "componentpriorities.lockstep.dev")
	const (
		replicas = "system:serviceaccount:kube-system:replicaset-controller"
		refusal  = "is for the pods of lockstep-scheduler and lockstep-controller"
	)
	release := render.Default().Namespace
	pod := func(namespace, class string) runtime.Object {
		return &corev1.Pod{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"},
			// The API server fills in the number before policies are evaluated.
			Spec: corev1.PodSpec{PriorityClassName: class, Priority: new(int32(1_000_000_000))},
		}
	}
	for name, c := range map[string]struct{ by, namespace, class, says string }{
		"a tenant's":                        {by: tenant, namespace: "team-a", class: "lockstep", says: refusal},
		"of a tenant's Deployment":          {by: replicas, namespace: "team-a", class: "lockstep", says: refusal},
		"of another class":                  {by: tenant, namespace: "team-a", class: "lockstep-urgent"},
		"of no class":                       {by: tenant, namespace: "team-a"},
		"of the scheduler":                  {by: replicas, namespace: release, class: "lockstep"},
		"of another class, beside Lockstep": {by: replicas, namespace: release, class: "urgent"},
	} {
		says(t, "pod "+name, admit(t, plugin, write{
			by: c.by, namespace: c.namespace, kind: "Pod", resource: corev1.SchemeGroupVersion.WithResource("pods"),
			next: pod(c.namespace, c.class),
		}), c.says)
	}
	group := func(api gangapi.API, spec map[string]any) runtime.Object {
		spec["schedulingPolicy"] = map[string]any{"gang": map[string]any{"minCount": int64(4)}}
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": api.Version().String(), "kind": gangapi.Kind,
			"metadata": map[string]any{"name": "x"}, "spec": spec,
		}}
	}
	for _, api := range []gangapi.API{gangapi.Native, gangapi.Resources} {
		for name, c := range map[string]struct{ by, namespace, class, says string }{
			"a tenant's":         {tenant, "team-a", "lockstep", refusal},
			"of a TrainJob":      {render.Default().Account(), "team-a", "lockstep", refusal},
			"beside Lockstep":    {tenant, release, "lockstep", refusal},
			"of another class":   {tenant, "team-a", "urgent", ""},
			"of the empty class": {tenant, "team-a", "", ""},
		} {
			says(t, string(api)+" group "+name, admit(t, plugin, write{
				by: c.by, namespace: c.namespace, kind: gangapi.Kind, resource: api.Resource(),
				next: group(api, map[string]any{"priorityClassName": c.class}),
			}), c.says)
		}
		says(t, string(api)+" group of no class", admit(t, plugin, write{
			by: tenant, kind: gangapi.Kind, resource: api.Resource(), next: group(api, map[string]any{}),
		}), "")
	}
}
