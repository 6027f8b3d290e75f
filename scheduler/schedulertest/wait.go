package schedulertest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/scheduler/explanation"
)

const (
	// pollInterval is the time between two checks of a condition.
	pollInterval = 10 * time.Millisecond
	// defaultTimeout is the longest time that a condition may take, on a machine with many other tests.
	defaultTimeout = time.Minute
)

// fakeClient remembers what it was asked.
type fakeClient interface {
	Actions() []clienttesting.Action
}

// waitForWatches waits until each list of an informer of the client is followed by its watch. A real API server sends
// the objects that were created between the two; the fake one loses them.
func waitForWatches(tb testing.TB, client fakeClient) {
	tb.Helper()
	lists := make(map[schema.GroupVersionResource]int)
	err := wait.PollUntilContextTimeout(tb.Context(), time.Millisecond, defaultTimeout, true,
		func(context.Context) (bool, error) {
			clear(lists)
			for _, action := range client.Actions() {
				switch action.GetVerb() {
				case "list":
					lists[action.GetResource()]++
				case "watch":
					lists[action.GetResource()]--
				}
			}
			maps.DeleteFunc(lists, func(_ schema.GroupVersionResource, left int) bool { return left <= 0 })
			return len(lists) == 0, nil
		})
	if err != nil {
		tb.Fatalf("not all informers watch: %v", lists)
	}
}

// WaitBound waits until all pods are bound and returns their nodes, in the order of the pods.
func (c *Cluster) WaitBound(tb testing.TB, pods []*corev1.Pod) []string {
	tb.Helper()
	return c.WaitBoundFor(tb, pods, defaultTimeout)
}

// WaitBoundFor is WaitBound with another timeout.
func (c *Cluster) WaitBoundFor(tb testing.TB, pods []*corev1.Pod, timeout time.Duration) []string {
	tb.Helper()
	nodes := make([]string, len(pods))
	err := wait.PollUntilContextTimeout(tb.Context(), pollInterval, timeout, true,
		func(context.Context) (bool, error) {
			for i, pod := range pods {
				if nodes[i] = c.NodeOf(pod.Name); nodes[i] == "" {
					return false, nil
				}
			}
			return true, nil
		})
	if err != nil {
		tb.Fatalf("not all pods were bound: %v; %s", nodes, c.conditions(tb, pods[0]))
	}
	return nodes
}

// conditions returns the conditions of a pod's PodGroup.
func (c *Cluster) conditions(tb testing.TB, pod *corev1.Pod) string {
	tb.Helper()
	if pod.Spec.SchedulingGroup == nil {
		return "a single pod"
	}
	g, err := c.SchedulingV1beta1().
		PodGroups(Namespace).
		Get(tb.Context(), *pod.Spec.SchedulingGroup.PodGroupName, metav1.GetOptions{})
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(g.Status.Conditions)
}

// WaitRejected waits until a gang has the condition lockstep.dev/Waiting and returns the condition's message.
func (c *Cluster) WaitRejected(tb testing.TB, group string) string {
	tb.Helper()
	var message string
	err := wait.PollUntilContextTimeout(tb.Context(), pollInterval, defaultTimeout, true,
		func(ctx context.Context) (bool, error) {
			g, err := c.SchedulingV1beta1().PodGroups(Namespace).Get(ctx, group, metav1.GetOptions{})
			if err != nil {
				return false, fmt.Errorf("reading PodGroup %s: %w", group, err)
			}
			condition := apimeta.FindStatusCondition(g.Status.Conditions, explanation.Condition)
			if condition == nil || condition.Status != metav1.ConditionTrue {
				return false, nil
			}
			message = condition.Message
			return true, nil
		})
	if err != nil {
		tb.Fatalf("gang %s was not rejected: %v", group, err)
	}
	return message
}

// WaitNominated waits until every pod is nominated and returns the nodes, sorted.
func (c *Cluster) WaitNominated(tb testing.TB, pods []*corev1.Pod) []string {
	tb.Helper()
	nodes := make([]string, len(pods))
	err := wait.PollUntilContextTimeout(tb.Context(), pollInterval, defaultTimeout, true,
		func(ctx context.Context) (bool, error) {
			for i, p := range pods {
				now, err := c.CoreV1().Pods(Namespace).Get(ctx, p.Name, metav1.GetOptions{})
				if err != nil {
					return false, fmt.Errorf("reading pod %s: %w", p.Name, err)
				}
				if nodes[i] = now.Status.NominatedNodeName; nodes[i] == "" {
					return false, nil
				}
			}
			return true, nil
		})
	if err != nil {
		tb.Fatalf("not all pods were nominated: %v; %v", nodes, err)
	}
	slices.Sort(nodes)
	return nodes
}

// WaitDeleted waits until the pods no longer exist.
func (c *Cluster) WaitDeleted(tb testing.TB, pods []*corev1.Pod) {
	tb.Helper()
	for _, pod := range pods {
		err := wait.PollUntilContextTimeout(tb.Context(), pollInterval, defaultTimeout, true,
			func(ctx context.Context) (bool, error) {
				_, err := c.CoreV1().Pods(Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
				return apierrors.IsNotFound(err), nil
			})
		if err != nil {
			tb.Fatalf("%s still exists: %v", pod.Name, err)
		}
	}
}

// ExpectUnbound fails the test if the scheduler bound one of the pods.
func (c *Cluster) ExpectUnbound(tb testing.TB, pods []*corev1.Pod) {
	tb.Helper()
	for _, p := range pods {
		if at := c.NodeOf(p.Name); at != "" {
			tb.Errorf("%s is on %s, but it has no legal placement", p.Name, at)
		}
	}
}
