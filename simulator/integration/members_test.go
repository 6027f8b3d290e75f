package integration_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/stage"
	"github.com/lockstep-project/lockstep/topology"
)

// A scheduler treats membership as fixed for a pod's whole life. A user who may change the pod may change a label, and
// must not change this one: not its value, not remove it, not add it.
func TestMembers_StayInTheirGang(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	pods := tenant(t, namespace).CoreV1().Pods(namespace)
	pod := func(name string, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec: corev1.PodSpec{
				SchedulerName: "nobody", Containers: []corev1.Container{{Name: "main", Image: "none"}},
			},
		}
	}
	stage.Within(t, 10*time.Second, "the tenant's role", func() bool {
		_, err := pods.Create(
			t.Context(),
			pod("member", map[string]string{gangapi.Label: "gang"}),
			metav1.CreateOptions{},
		)
		return err == nil
	})
	if _, err := pods.Create(t.Context(), pod("single", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pod     string
		value   any
		key     string
		refused bool
	}{
		"to another gang":    {"member", "other", gangapi.Label, true},
		"out of its gang":    {"member", nil, gangapi.Label, true},
		"into a gang":        {"single", "gang", gangapi.Label, true},
		"its gang once more": {"member", "gang", gangapi.Label, false},
		"another label":      {"member", "x", "example.com/team", false},
	} {
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{c.key: c.value}}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = pods.Patch(t.Context(), c.pod, types.MergePatchType, patch, metav1.PatchOptions{})
		if apierrors.IsInvalid(err) != c.refused || err != nil && !c.refused {
			t.Errorf("%s: %v, want a refusal: %t", name, err, c.refused)
		}
	}
	if offered() == probe.Resources {
		return // the API server drops the field
	}
	two := pod("of-two", map[string]string{gangapi.Label: "gang"})
	two.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("other")}
	if _, err := pods.Create(t.Context(), two, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("a pod whose label and field name different gangs: %v, want a refusal", err)
	}
}

// A number that a tenant writes into a custom resource is not checked. Its gang would start before all others', and
// preempt them.
func TestMembers_DecideTheirGangsPriority(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	client, err := gangapi.Client(tenantWith(t, namespace, "tenant", everything()), gangapi.Resources)
	if err != nil {
		t.Fatal(err)
	}
	groups := client.SchedulingV1beta1().PodGroups(namespace)
	group := func(name string, priority *int32) *schedulingv1beta1.PodGroup {
		return &schedulingv1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: schedulingv1beta1.PodGroupSpec{
				SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
					Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1},
				},
				Priority: priority,
			},
		}
	}
	stage.Within(t, 10*time.Second, "the tenant's role", func() bool {
		_, err := groups.Create(t.Context(), group("plain", nil), metav1.CreateOptions{})
		return err == nil
	})
	_, err = groups.Create(t.Context(), group("important", new(int32(1_000_000))), metav1.CreateOptions{})
	wantForbidden(t, err, "spec.priority is written by the scheduler")
	patch := func(client *gangapi.Clientset, priority int) error {
		_, err := client.SchedulingV1beta1().PodGroups(namespace).Patch(t.Context(), "plain", types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"priority":%d}}`, priority), metav1.PatchOptions{})
		return err
	}
	wantForbidden(t, patch(client, 1_000_000), "spec.priority is written by the scheduler")
	scheduler, err := gangapi.Client(as("system:serviceaccount:lockstep-system:lockstep-scheduler"), gangapi.Resources)
	if err != nil {
		t.Fatal(err)
	}
	if err := patch(scheduler, 7); err != nil {
		t.Errorf("the scheduler: %v", err)
	}
	if err := patch(scheduler, 8); !apierrors.IsInvalid(err) {
		t.Errorf("a priority that changes: %v, want a refusal", err)
	}
}

// Any pod with the label is a member, regardless of its creator and in every mode: nothing is bound before the group is
// there and all members are, and then all are bound, in one clique.
func TestMembers_JoinByTheLabelAlone(t *testing.T) {
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	asks := corev1.ResourceList{gpu: resource.MustParse("4")}
	const size = 6
	for rank := range size {
		_, err := shared.Client.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name:   fmt.Sprintf("plain-%d", rank),
				Labels: map[string]string{gangapi.Label: "plain"},
			},
			Spec: corev1.PodSpec{
				SchedulerName: ours, RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{
					Name: "main", Image: "train", Resources: corev1.ResourceRequirements{Requests: asks, Limits: asks},
				}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	bound := func() (cliques map[string]int) {
		cliques = map[string]int{}
		pods, err := shared.Client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != "" {
				cliques[cliqueOf(pod.Spec.NodeName)]++
			}
		}
		return cliques
	}
	time.Sleep(2 * time.Second) // for a scheduler that would take them for single pods
	if got := bound(); len(got) > 0 {
		t.Fatalf("without their group, pods are bound in %v", got)
	}
	group := &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{
			Name: "plain", Annotations: map[string]string{topology.AnnotationRequiredTopology: "clique"},
		},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: size},
		}},
	}
	if _, err := shared.Client.SchedulingV1beta1().
		PodGroups(namespace).
		Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stage.Within(t, 40*time.Second, "six members in one clique", func() bool {
		cliques := bound()
		for _, count := range cliques {
			return len(cliques) == 1 && count == size
		}
		return false
	})
	background := metav1.DeletePropagationBackground
	err := shared.Client.CoreV1().Pods(namespace).DeleteCollection(t.Context(),
		metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
}
