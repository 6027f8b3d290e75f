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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// trialOf returns a trial of the sweep "lr" with a limit on the running ones.
func trialOf(name, namespace string, limit int) string {
	return fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: %s
  namespace: %s
  labels: {lockstep.dev/sweep: lr}
  annotations:
    lockstep.dev/sweep-parallelism: "%d"
    simulator.lockstep.dev/run-time: 300s
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 1, resourcesPerNode: {limits: {nvidia.com/gpu: 1}}}
---
`, name, namespace, limit)
}

// runs reports whether a TrainJob has a pod with a node.
func runs(t *testing.T, namespace, job string) bool {
	t.Helper()
	return slices.ContainsFunc(podsOf(t.Context(), t, namespace, job), func(pod corev1.Pod) bool {
		return pod.Spec.NodeName != "" && pod.DeletionTimestamp == nil
	})
}

// A tuner creates three trials; one of them may run. The others wait beside free machines, and say why; when the first
// is deleted, and when the second is suspended, the next one runs. A sweep of the same name in another namespace is
// another one.
func TestSweep_TrialsTakeTurns(t *testing.T) {
	namespace := namespaceOf(t)
	submit(t, trialOf("first", "NAMESPACE", 1))
	eventually(t, "the first trial", func() bool { return runs(t, namespace, "first") })
	submitMore(t, trialOf("second", "NAMESPACE", 1))
	submitMore(t, trialOf("third", "NAMESPACE", 1)+
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: NAMESPACE-2}\n---\n"+trialOf("theirs", "NAMESPACE-2", 1))
	eventually(t, "the trial of the other namespace", func() bool { return runs(t, namespace+"-2", "theirs") })
	eventually(t, "the words of the others", func() bool {
		return strings.Contains(schedulingOf(t, namespace, "third").Reason,
			"waits for its sweep's turn: 1 of 1 trials run") && schedulingOf(t, namespace, "second").Reason != ""
	})
	if runs(t, namespace, "second") || runs(t, namespace, "third") {
		t.Error("a trial runs beyond the limit")
	}
	err := shared.Dynamic.Resource(trainJobs).Namespace(namespace).
		Delete(context.WithoutCancel(t.Context()), "first", metav1.DeleteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second trial", func() bool { return runs(t, namespace, "second") })
	if runs(t, namespace, "third") {
		t.Error("the third trial runs beside the second")
	}
	suspend(t, namespace, "second")
	eventually(t, "the third trial", func() bool { return runs(t, namespace, "third") })
}

// The lowest limit counts, and a limit that is changed on all trials counts at once.
func TestSweep_LimitIsRaised(t *testing.T) {
	namespace := namespaceOf(t)
	submit(t, trialOf("first", "NAMESPACE", 1))
	eventually(t, "the first trial", func() bool { return runs(t, namespace, "first") })
	submitMore(t, trialOf("second", "NAMESPACE", 2))
	eventually(t, "the words of the second", func() bool {
		return strings.Contains(schedulingOf(t, namespace, "second").Reason, "1 of 1 trials run")
	})
	patch := []byte(`{"metadata":{"annotations":{"lockstep.dev/sweep-parallelism":"2"}}}`)
	_, err := shared.Dynamic.Resource(trainJobs).Namespace(namespace).
		Patch(t.Context(), "first", types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(
		t,
		"the second trial",
		func() bool { return runs(t, namespace, "second") && runs(t, namespace, "first") },
	)
}

// A tuner reads the metrics of a trial from its status, as the trial reports them: it needs neither logs nor a sidecar.
func TestSweep_TunerReadsMetricsFromStatus(t *testing.T) {
	namespace := namespaceOf(t)
	submit(t, trialOf("trial", "NAMESPACE", 1))
	pods := newRunners(t, namespace, "trial", 1, nil)
	audience := plan.StatusAudience(types.NamespacedName{Namespace: namespace, Name: "trial"})
	reporter, proof := newReporter(t, namespace, "trial", pods[0]), token(t, audience, &pods[0])
	for step, loss := range []string{"0.90", "0.42"} {
		report := fmt.Sprintf(
			`{"trainerStatus":{"metrics":[{"name":"step","value":"%d"},{"name":"loss","value":"%s"}],`+
				`"lastUpdatedTime":"2026-11-22T10:00:0%dZ"}}`,
			step,
			loss,
			step,
		)
		if code, answer := reporter.post(t, proof, report); code != http.StatusOK {
			t.Fatalf("answer %d %s", code, answer)
		}
		testcluster.Within(
			t,
			40*time.Second,
			"the loss "+loss,
			func() bool { return metric(t, namespace, "trial", "loss") == loss },
		)
	}
}

// metric returns the value of a metric in the status of a TrainJob, "" for none.
func metric(t *testing.T, namespace, job, name string) string {
	t.Helper()
	metrics, _ := trainerStatus(t, namespace, job)["metrics"].([]any)
	for _, m := range metrics {
		if of, _ := m.(map[string]any); of["name"] == name {
			value, _ := of["value"].(string)
			return value
		}
	}
	return ""
}
