package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/scheduler/leaving"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/topology"
)

// annotate writes an annotation of a node, "null" takes it away.
func annotate(t *testing.T, node, key, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%s}}}`, key, value)
	ctx := context.WithoutCancel(t.Context()) // it has ended when a cleanup runs
	if _, err := shared.Client.CoreV1().Nodes().
		Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}

// reports changes a node as its kubelet's next report does: a node that refused a pod is suspected until it has
// changed.
func reports(t *testing.T, node string) {
	t.Helper()
	annotate(t, node, "test.lockstep.dev/reported", fmt.Sprintf("%q", t.Name()))
}

// An administrator wants a node to be avoided. The gang there runs until its trainer has saved its work; then all start
// again, elsewhere, which counts as no failure.
func TestHealth_GangLeavesAtItsNextCheckpoint(t *testing.T) {
	namespace := namespaceOf(t)
	submit(
		t,
		strings.Replace(onPair("leaves", 2, "10m"), "nodeSelector: {"+pairLabel+": NAMESPACE}", "nodeSelector: {}", 1),
	)
	before := newRunners(t, namespace, "leaves", 2, nil)
	avoided := before[1].Spec.NodeName
	annotate(t, avoided, topology.KeyAvoid, `"ticket 7"`)
	t.Cleanup(func() { annotate(t, avoided, topology.KeyAvoid, "null") })
	time.Sleep(3 * time.Second) // instants of checkpoints have whole seconds
	for _, pod := range podsOf(t.Context(), t, namespace, "leaves") {
		if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			t.Fatalf("%s left before the gang had saved its work", pod.Name)
		}
	}

	audience := plan.StatusAudience(types.NamespacedName{Namespace: namespace, Name: "leaves"})
	reporter, bearer := newReporter(t, namespace, "leaves", before[0]), token(t, audience, &before[0])
	saves := func() (int, string) {
		now := time.Now()
		return reporter.post(t, bearer, fmt.Sprintf(
			`{"trainerStatus":{"metrics":[{"name":%q,"value":"%d"}],"lastUpdatedTime":%q}}`,
			plan.MetricCheckpoint, now.Unix(), now.UTC().Format(time.RFC3339)))
	}
	if code, answer := saves(); code != http.StatusOK {
		t.Fatalf("answer %d %s", code, answer)
	}
	// The scheduler compares checkpoints with the instant at which it saw the mark, which may be later than this one.
	testcluster.Within(t, 60*time.Second, "the gang's leaving", func() bool {
		saves()
		return !slices.ContainsFunc(podsOf(t.Context(), t, namespace, "leaves"), func(p corev1.Pod) bool {
			return p.UID == before[0].UID && p.DeletionTimestamp == nil
		})
	})
	after := newRunners(t, namespace, "leaves", 2, before)
	if slices.ContainsFunc(after, func(p corev1.Pod) bool { return p.Spec.NodeName == avoided }) {
		t.Errorf("the gang is on %s again", avoided)
	}
	all, counted := number(
		t,
		namespace,
		"leaves",
		"restarts",
	), number(
		t,
		namespace,
		"leaves",
		"restartsCountTowardsMax",
	)
	if all != 1 || counted != 0 {
		t.Errorf("%d restarts, %d of them counted", all, counted)
	}
	want := "node " + avoided + " has the mark " + topology.KeyAvoid
	testcluster.Within(t, 30*time.Second, "the Event that "+want, func() bool {
		events, err := shared.Client.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(events.Items, func(event eventsv1.Event) bool {
			return event.Reason == leaving.Event && strings.Contains(event.Note, want)
		})
	})
}
