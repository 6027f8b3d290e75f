package operators_test

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// gang is a gang of a kind, in a namespace of its own.
type gang struct {
	kind
	namespace string
	// size is the number of its members.
	size int
}

func number10(n int) string { return strconv.Itoa(n) }

// create submits a gang. It is removed when the test ends.
func create(t *testing.T, kind kind, size int) gang {
	t.Helper()
	g := gang{kind, strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())), size}
	objects, err := render.Objects([]byte(manifest(t, kind, g.namespace, size)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			g.tell(t)
		}
		g.delete(t)
	})
	for _, object := range objects {
		testcluster.Within(t, 30*time.Second, "the creation of "+object.GetKind(), func() bool {
			err := shared.Apply(t.Context(), object) // a webhook may not answer yet
			if err != nil {
				t.Log(err)
			}
			return err == nil
		})
	}
	return g
}

const patience = 30 * time.Second

// pods returns the members in a phase, or all for the empty one, in the order of their ranks.
func (g gang) pods(t *testing.T, phase corev1.PodPhase) []corev1.Pod {
	t.Helper()
	list, err := shared.Client.CoreV1().Pods(g.namespace).List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		if pod.Spec.SchedulerName == corev1.DefaultSchedulerName {
			return true // KubeRay's submitter
		}
		return phase != "" && (pod.Status.Phase != phase || pod.DeletionTimestamp != nil)
	})
	slices.SortFunc(found, func(a, b corev1.Pod) int {
		if g.rank == nil {
			return strings.Compare(a.Name, b.Name)
		}
		first, _ := g.rank(a)
		second, _ := g.rank(b)
		return first - second
	})
	return found
}

// running waits until so many members run, and no others are there.
func (g gang) running(t *testing.T, members int) {
	t.Helper()
	testcluster.Within(t, patience, "a gang that runs", func() bool {
		return len(g.pods(t, corev1.PodRunning)) == members && len(g.pods(t, "")) == members
	})
}

func (g gang) inOneClique(t *testing.T) {
	t.Helper()
	cliques := map[string]int{}
	for _, pod := range g.pods(t, corev1.PodRunning) {
		node, err := shared.Client.CoreV1().Nodes().Get(t.Context(), pod.Spec.NodeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		cliques[node.Labels["nvidia.com/gpu.clique"]]++
	}
	if len(cliques) != 1 {
		t.Fatalf("its members are in cliques %v", cliques)
	}
}

// inOrder fails the test unless neighboring ranks are on neighboring nodes, in a ring that may begin anywhere. It
// returns a description of their order.
func (g gang) inOrder(t *testing.T) string {
	t.Helper()
	if g.rank == nil {
		return "has none"
	}
	var nodes []string
	for _, pod := range g.pods(t, corev1.PodRunning) {
		if _, ranked := g.rank(pod); ranked {
			nodes = append(nodes, pod.Spec.NodeName)
		}
	}
	turns := 0
	for i, node := range nodes {
		if nodes[(i+1)%len(nodes)] <= node {
			turns++
		}
	}
	if len(nodes) < 2 || turns != 1 {
		t.Fatalf("its ranks are on %v", nodes)
	}
	return "in order"
}

// group returns the PodGroup that stands for the gang; nil for none.
func (g gang) group(t *testing.T) *schedulingv1beta1.PodGroup {
	t.Helper()
	list, err := shared.Client.SchedulingV1beta1().
		PodGroups(g.namespace).
		List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(list.Items, func(group schedulingv1beta1.PodGroup) bool {
		return group.Annotations["lockstep.dev/dialect"] == g.dialect
	})
	if at < 0 {
		return nil
	}
	return &list.Items[at]
}

// says fails the test unless the PodGroup was read with so many members.
func (g gang) says(t *testing.T, minimum int32) {
	t.Helper()
	group := g.group(t)
	if group == nil || group.Spec.SchedulingPolicy.Gang == nil || group.Spec.SchedulingPolicy.Gang.MinCount != minimum {
		t.Fatalf("its PodGroup is %+v", group)
	}
}

// waits returns when the gang says that it waits, and why.
func (g gang) waits(t *testing.T, why string) {
	t.Helper()
	testcluster.Within(t, patience, "the reason", func() bool {
		group := g.group(t)
		if group == nil {
			return false
		}
		for _, condition := range group.Status.Conditions {
			if condition.Type == "lockstep.dev/Waiting" && condition.Status == metav1.ConditionTrue &&
				strings.Contains(condition.Message, why) {
				t.Log(condition.Message)
				return true
			}
		}
		return false
	})
}

// lose deletes the last member, and waits for its owner's reaction.
func (g gang) lose(t *testing.T) {
	t.Helper()
	before := g.pods(t, corev1.PodRunning)
	lost := before[len(before)-1]
	now := int64(0)
	err := shared.Client.CoreV1().
		Pods(g.namespace).
		Delete(t.Context(), lost.Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
	if err != nil {
		t.Fatal(err)
	}
	testcluster.Within(t, patience, "the end of the lost member", func() bool {
		// Kueue retains it until there is another one.
		return !slices.ContainsFunc(
			g.pods(t, corev1.PodRunning),
			func(pod corev1.Pod) bool { return pod.UID == lost.UID },
		)
	})
	left := len(before)
	if g.loss == gone {
		left--
	}
	testcluster.Within(t, patience, "a gang that runs again", func() bool {
		after := g.pods(t, corev1.PodRunning)
		return len(after) == left && stayed(before, after) == g.staying(before)
	})
	after := g.pods(t, corev1.PodRunning)
	if g.loss == again && g.rank != nil && after[len(after)-1].Spec.NodeName != lost.Spec.NodeName {
		t.Fatalf("its lost member is on %s, and was on %s", after[len(after)-1].Spec.NodeName, lost.Spec.NodeName)
	}
}

// staying returns the number of members that the loss of one does not touch.
func (g gang) staying(before []corev1.Pod) int {
	if g.loss == all {
		return 0
	}
	return len(before) - 1
}

// stayed counts the pods that are in both lists.
func stayed(before, after []corev1.Pod) int {
	count := 0
	for _, pod := range after {
		if slices.ContainsFunc(before, func(other corev1.Pod) bool { return other.UID == pod.UID }) {
			count++
		}
	}
	return count
}

// remove deletes the owner, and waits until nothing of the gang is left.
func (g gang) remove(t *testing.T) {
	t.Helper()
	g.deleteOwner(t)
	// The garbage collector looks for new kinds of owners every half minute.
	testcluster.Within(t, 2*patience, "the end of its pods", func() bool { return len(g.pods(t, "")) == 0 })
	testcluster.Within(t, patience, "the end of its PodGroup", func() bool { return g.group(t) == nil })
}

func (g gang) deleteOwner(t *testing.T) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	for _, owner := range g.owners {
		err := shared.Dynamic.Resource(owner).
			Namespace(g.namespace).
			DeleteCollection(context.WithoutCancel(t.Context()),
				metav1.DeleteOptions{
					GracePeriodSeconds: new(int64),
					PropagationPolicy:  &background,
				}, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// delete removes the leftovers of a failed test, so that the next one has the machines.
func (g gang) delete(t *testing.T) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	g.deleteOwner(t)
	err := shared.Client.CoreV1().Namespaces().Delete(ctx, g.namespace, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	// Finalizers of controllers that no longer run would block the deletion of pods for ever.
	for _, pod := range g.pods(t, "") {
		_, _ = shared.Client.CoreV1().Pods(g.namespace).Patch(ctx, pod.Name, types.MergePatchType,
			[]byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	}
}

// tell logs the state of a gang whose test has failed.
func (g gang) tell(t *testing.T) {
	t.Helper()
	for _, pod := range g.pods(t, "") {
		rank := -1
		if g.rank != nil {
			rank, _ = g.rank(pod)
		}
		t.Logf(
			"%s rank %d %s on %q of %s, labels %v, annotations %v, gates %v, %+v",
			pod.Name,
			rank,
			pod.Status.Phase,
			pod.Spec.NodeName,
			pod.Spec.SchedulerName,
			pod.Labels,
			pod.Annotations,
			pod.Spec.SchedulingGates,
			pod.Status.Conditions,
		)
	}
	t.Logf("PodGroup: %+v", g.group(t))
	events, err := shared.Client.EventsV1().
		Events(g.namespace).
		List(context.WithoutCancel(t.Context()), metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, event := range events.Items {
		t.Logf("%s %s/%s: %s", event.Reason, event.Regarding.Kind, event.Regarding.Name, event.Note)
	}
}
