package integration_test

import (
	"context"
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
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	typedschedulingv1beta1 "k8s.io/client-go/kubernetes/typed/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/manifests/probe"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
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
	testcluster.Within(t, 10*time.Second, "the tenant's role", func() bool {
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
	testcluster.Within(t, 10*time.Second, "the tenant's role", func() bool {
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
	const size = 6
	gang := newPlainGang(t)
	for rank := range size {
		gang.add(t, fmt.Sprintf("plain-%d", rank), 4)
	}
	time.Sleep(2 * time.Second) // for a scheduler that would take them for single pods
	if got := gang.cliques(t); len(got) > 0 {
		t.Fatalf("without their group, pods are bound in %v", got)
	}
	gang.group(t, size, topology.AnnotationRequiredTopology)
	testcluster.Within(t, 40*time.Second, "six members in one clique", func() bool {
		cliques := gang.cliques(t)
		for _, count := range cliques {
			return len(cliques) == 1 && count == size
		}
		return false
	})
}

// Of two kinds of members, each loses more than sixteen at once. All of them return to the cliques of those that run.
func TestMembers_ManyOfTwoKindsReturn(t *testing.T) {
	const each, lost = 20, 17
	gang := newPlainGang(t)
	add := func(life string, from, to int) {
		for rank := from; rank < to; rank++ {
			gang.add(t, fmt.Sprintf("whole-%d-%s", rank, life), 4)
			gang.add(t, fmt.Sprintf("half-%d-%s", rank, life), 2)
		}
	}
	add("first", 0, each)
	gang.group(t, 2*each, topology.AnnotationPreferredTopology)
	all := func() bool {
		bound := 0
		for _, count := range gang.cliques(t) {
			bound += count
		}
		return bound == 2*each
	}
	testcluster.Within(t, 60*time.Second, "all members", all)
	before := gang.cliques(t)
	for rank := each - lost; rank < each; rank++ {
		gang.remove(t, fmt.Sprintf("whole-%d-first", rank))
		gang.remove(t, fmt.Sprintf("half-%d-first", rank))
	}
	// With names of their own, as of a Job: kwok would write the end of a deleted pod into a new one of its name.
	add("again", each-lost, each)
	testcluster.Within(t, 60*time.Second, "those that were lost", all)
	for clique := range gang.cliques(t) {
		if before[clique] == 0 {
			t.Errorf("members are in %s, where none was before; the gang was in %v", clique, before)
		}
	}
}

// plainGang is a gang of pods that no controller has made, in the test's own namespace. They are deleted when the test
// ends.
type plainGang struct {
	pods   typedcorev1.PodInterface
	groups typedschedulingv1beta1.PodGroupInterface
}

// newPlainGang makes the namespace.
func newPlainGang(t *testing.T) plainGang {
	t.Helper()
	namespace := namespaceOf(t)
	makeNamespace(t, namespace)
	g := plainGang{
		pods: shared.Client.CoreV1().Pods(namespace), groups: shared.Client.SchedulingV1beta1().PodGroups(namespace),
	}
	t.Cleanup(func() {
		err := g.pods.DeleteCollection(context.WithoutCancel(t.Context()),
			metav1.DeleteOptions{GracePeriodSeconds: new(int64)}, metav1.ListOptions{})
		if err != nil {
			t.Error(err)
		}
	})
	return g
}

// group makes the gang's PodGroup, which names the clique as the level that the annotation speaks of.
func (g plainGang) group(t *testing.T, size int32, annotation string) {
	t.Helper()
	_, err := g.groups.Create(t.Context(), &schedulingv1beta1.PodGroup{
		ObjectMeta: metav1.ObjectMeta{Name: "plain", Annotations: map[string]string{annotation: "clique"}},
		Spec: schedulingv1beta1.PodGroupSpec{SchedulingPolicy: schedulingv1beta1.PodGroupSchedulingPolicy{
			Gang: &schedulingv1beta1.GangSchedulingPolicy{MinCount: size},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// add makes a member with so many accelerators.
func (g plainGang) add(t *testing.T, name string, gpus int64) {
	t.Helper()
	asks := corev1.ResourceList{gpu: *resource.NewQuantity(gpus, resource.DecimalSI)}
	_, err := g.pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{gangapi.Label: "plain"}},
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

// remove deletes a member at once.
func (g plainGang) remove(t *testing.T, name string) {
	t.Helper()
	if err := g.pods.Delete(t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
}

// cliques returns the number of members that are bound in each clique.
func (g plainGang) cliques(t *testing.T) map[string]int {
	t.Helper()
	pods, err := g.pods.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cliques := map[string]int{}
	for _, pod := range pods.Items {
		if pod.Spec.NodeName != "" {
			cliques[cliqueOf(pod.Spec.NodeName)]++
		}
	}
	return cliques
}
