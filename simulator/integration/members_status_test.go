package integration_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// Kubernetes stores labels that are sent with a pod's status. A user who may write it in a namespace cannot change a
// membership that way; the status and other labels pass.
func TestMembers_StayInTheirGangByTheirStatus(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	client, err := kubernetes.NewForConfig(tenantWith(t, namespace, "tenant", everything()))
	if err != nil {
		t.Fatal(err)
	}
	pods := client.CoreV1().Pods(namespace)
	for name, labels := range map[string]map[string]string{"member": {gangapi.Label: "gang"}, "single": nil} {
		testcluster.Within(t, 10*time.Second, "the tenant's role", func() bool {
			_, err := pods.Create(t.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
				Spec: corev1.PodSpec{
					SchedulerName: "nobody", Containers: []corev1.Container{{Name: "main", Image: "none"}},
				},
			}, metav1.CreateOptions{})
			return err == nil
		})
	}
	for name, c := range map[string]struct {
		pod     string
		label   string
		value   any
		refused bool
	}{
		"to another gang":    {"member", gangapi.Label, "other", true},
		"out of its gang":    {"member", gangapi.Label, nil, true},
		"into a gang":        {"single", gangapi.Label, "gang", true},
		"its gang once more": {"member", gangapi.Label, "gang", false},
		"another label":      {"member", "example.com/team", "x", false},
	} {
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"labels": map[string]any{c.label: c.value}},
			"status":   map[string]any{"message": name},
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = pods.Patch(t.Context(), c.pod, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		if apierrors.IsInvalid(err) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: %v, want a refusal: %t", name, err, c.refused)
		}
	}
}

// Since 1.35 the labels of a Binding override those of the pod. A user who may bind pods in a namespace, such as a
// private scheduler, cannot change a membership that way, through neither of the two binding endpoints.
func TestMembers_StayInTheirGangWhenBound(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	client, err := kubernetes.NewForConfig(tenantWith(t, namespace, "tenant", everything()))
	if err != nil {
		t.Fatal(err)
	}
	bindings := map[string]func(*corev1.Binding) error{
		"pods/binding": func(b *corev1.Binding) error {
			return client.CoreV1().Pods(namespace).Bind(t.Context(), b, metav1.CreateOptions{})
		},
		"bindings": func(b *corev1.Binding) error {
			return client.CoreV1().
				RESTClient().
				Post().
				Namespace(namespace).
				Resource("bindings").
				Body(b).
				Do(t.Context()).
				Error()
		},
	}
	for address, bind := range bindings {
		name := strings.ReplaceAll(address, "/", "-")
		testcluster.Within(t, 10*time.Second, "the tenant's role", func() bool {
			_, err := client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: name},
				Spec: corev1.PodSpec{
					SchedulerName: "nobody", Containers: []corev1.Container{{Name: "main", Image: "none"}},
				},
			}, metav1.CreateOptions{})
			return err == nil
		})
		binding := &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{gangapi.Label: "gang"}},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "nowhere"},
		}
		if err := bind(binding); !apierrors.IsInvalid(err) {
			t.Errorf("%s with a gang: %v, want a refusal", address, err)
		}
		binding.Labels = map[string]string{"example.com/team": "x"}
		if err := bind(binding); err != nil {
			t.Errorf("%s with another label: %v", address, err)
		}
	}
}
