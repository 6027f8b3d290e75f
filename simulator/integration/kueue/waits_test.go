package kueue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// oneRack is a queue, in a namespace of its own, whose flavor is one rack of the fleet.
func oneRack(name, rack string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: %[1]s}
spec: {nodeLabels: {accelerator.topograph.run/domain: %[2]s}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: %[1]s, resources: [{name: nvidia.com/gpu, nominalQuota: 72}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %[1]s, namespace: %[1]s}
spec: {clusterQueue: %[1]s}
`, name, rack)
}

// nodesJob is a job on whole nodes of a rack, in a queue or, if that is empty, in none.
func nodesJob(namespace, name, rack, runTime string, nodes int, queue string) string {
	labels := "{}"
	if queue != "" {
		labels = fmt.Sprintf("{%s: %s}", queueLabel, queue)
	}
	return fmt.Sprintf(`---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: %s
  namespace: %s
  labels: %s
  annotations: {simulator.lockstep.dev/run-time: %s}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: %d, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
  runtimePatches:
  - manager: platform.example.com/rack
    trainingRuntimeSpec:
      template:
        spec:
          replicatedJobs:
          - name: node
            template: {spec: {template: {spec: {nodeSelector: {accelerator.topograph.run/domain: %s}}}}}
`, name, namespace, labels, runTime, nodes, rack)
}

// A gang that Kueue admits waits at Lockstep for nodes that a job without a queue holds, behind a reservation. A
// shorter timeout of Kueue's has it evicted: nothing of it stays, not even the reservation, so that a later job gets
// the node that was reserved. It is admitted again, and runs when there is room.
func TestWaitForPodsReady_ShorterThanTheReservation(t *testing.T) {
	restartKueue(t, map[string]any{"waitForPodsReady": map[string]any{
		"timeout": "8s", "recoveryTimeout": "24h",
		"requeuingStrategy": map[string]any{"backoffBaseSeconds": 6, "backoffLimitCount": 100},
	}})
	h := record(t, "impatient")
	_, _ = shared.Submit(
		t,
		write(t, oneRack("impatient", "rack-3")+nodesJob("impatient", "holder", "rack-3", "10m", 17, "")),
	)
	expectRunning(t, "impatient", "holder", 17)
	done := play(
		t,
		write(t, strings.TrimPrefix(nodesJob("impatient", "gang", "rack-3", "5s", 18, "impatient"), "---\n")),
	)
	_, at := h.next(t, 0, "gang", "admitted", state.admitted)
	reserved, at := h.next(t, at, "gang", "waits behind a reservation", state.reserved)
	logQueue(t, reserved)
	_, _ = shared.Submit(
		t,
		write(t, strings.TrimPrefix(nodesJob("impatient", "later", "rack-3", "10m", 1, ""), "---\n")),
	)

	_, at = h.next(t, at, "gang", "evicted: suspended, and nothing of it is active", state.quiet)
	_, at = h.next(t, at, "gang", "its admission is taken back", state.withdrawn)
	evicted := expectEviction(t, "impatient", "gang", "PodsReadyTimeout")
	expectNothing(t, "impatient", "gang")
	expectRunning(t, "impatient", "later", 1)
	if bound := boundAt(t, "impatient", "later"); bound.Before(evicted) {
		t.Errorf("the later job got a reserved node at %v, and the gang was evicted at %v", bound, evicted)
	} else {
		t.Logf("the gang was evicted at %v, and its node went to the later job at %v", evicted, bound)
	}

	remove(t, "impatient", "holder")
	remove(t, "impatient", "later")
	_, at = h.next(t, at, "gang", "admitted again", state.admitted)
	_, _ = h.next(t, at, "gang", "complete", state.complete)
	if job := (<-done)["gang"]; job.Outcome != summary.Complete || len(job.Ranks) != 18 {
		t.Errorf("%+v, want 18 ranks that completed", job)
	}
}

// A longer timeout lets the gang wait at Lockstep: it starts when its reservation is due, and Kueue never evicts it.
func TestWaitForPodsReady_LongerThanTheReservation(t *testing.T) {
	restartKueue(t, map[string]any{"waitForPodsReady": map[string]any{"timeout": "5m", "recoveryTimeout": "5m"}})
	h := record(t, "patient")
	_, _ = shared.Submit(
		t,
		write(t, oneRack("patient", "rack-3")+nodesJob("patient", "holder", "rack-3", "10m", 17, "")),
	)
	expectRunning(t, "patient", "holder", 17)
	done := play(t, write(t, strings.TrimPrefix(nodesJob("patient", "gang", "rack-3", "5s", 4, "patient"), "---\n")))
	_, at := h.next(t, 0, "gang", "admitted", state.admitted)
	reserved, _ := h.next(t, at, "gang", "waits behind a reservation", state.reserved)
	logQueue(t, reserved)
	time.Sleep(12 * time.Second) // longer than the other test's timeout
	if running := runningOf(t, "patient", "gang"); running > 0 {
		t.Fatalf("%d pods of the gang run, and there is one node", running)
	}
	remove(t, "patient", "holder")
	_, end := h.next(t, at, "gang", "complete", state.complete)
	h.never(t, at, end, "gang", "suspended", state.suspended)
	if job := (<-done)["gang"]; job.Outcome != summary.Complete || len(job.Ranks) != 4 {
		t.Errorf("%+v, want 4 ranks that completed", job)
	}
}

// restartKueue restarts Kueue with settings for one test.
func restartKueue(t *testing.T, settings map[string]any) {
	t.Helper()
	if err := shared.RestartKueue(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := shared.RestartKueue(context.WithoutCancel(t.Context()), nil); err != nil {
			t.Error(err)
		}
	})
}

// reserved reports whether Lockstep reserves nodes for the job.
func (s state) reserved() bool {
	reservation, _, _ := unstructured.NestedString(s.object, "status", "scheduling", "queue", "reservation")
	return !s.suspended() && reservation != ""
}

// logQueue writes the scheduler's reason for a waiting job.
func logQueue(t *testing.T, s state) {
	t.Helper()
	scheduling, _, _ := unstructured.NestedMap(s.object, "status", "scheduling")
	t.Logf("%s: phase %v, queue %v: %v", s.name, scheduling["phase"], scheduling["queue"], scheduling["reason"])
}

func runningOf(t *testing.T, namespace, job string) int {
	t.Helper()
	running := 0
	for _, pod := range podsOf(t, namespace, job) {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			running++
		}
	}
	return running
}

func expectRunning(t *testing.T, namespace, job string, count int) {
	t.Helper()
	testcluster.Within(t, 30*time.Second, fmt.Sprintf("%d running pods of %s", count, job), func() bool {
		return runningOf(t, namespace, job) == count
	})
}

// workloadOf returns Kueue's Workload of a job.
func workloadOf(t *testing.T, namespace, job string) (unstructured.Unstructured, bool) {
	t.Helper()
	list, err := shared.Dynamic.Resource(workloads).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(list.Items, func(item unstructured.Unstructured) bool {
		owners := item.GetOwnerReferences()
		return len(owners) == 1 && owners[0].Name == job
	})
	if at < 0 {
		return unstructured.Unstructured{}, false
	}
	return list.Items[at], true
}

// expectEviction waits until Kueue has evicted the Workload of a job for a reason.
// It returns when.
func expectEviction(t *testing.T, namespace, job, reason string) time.Time {
	t.Helper()
	var at time.Time
	testcluster.Within(t, 20*time.Second, "an eviction for "+reason, func() bool {
		workload, _ := workloadOf(t, namespace, job)
		conditions, _, _ := unstructured.NestedSlice(workload.Object, "status", "conditions")
		for _, entry := range conditions {
			condition := entry.(map[string]any)
			if condition["type"] == "Evicted" && condition["reason"] == reason {
				t.Logf(
					"Workload %s: Evicted=%v (%v) %v",
					workload.GetName(),
					condition["status"],
					reason,
					condition["message"],
				)
				at = instant(t, fmt.Sprint(condition["lastTransitionTime"]))
				return true
			}
		}
		return false
	})
	return at
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// boundAt returns when the pods of a job were bound.
func boundAt(t *testing.T, namespace, job string) time.Time {
	t.Helper()
	var at time.Time
	for _, pod := range podsOf(t, namespace, job) {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodScheduled {
				at = condition.LastTransitionTime.Time
			}
		}
	}
	return at
}

// expectNothing waits until a job has no pods and no PodGroup.
func expectNothing(t *testing.T, namespace, job string) {
	t.Helper()
	testcluster.Within(t, 30*time.Second, "the end of all pods and groups of "+job, func() bool {
		groups, err := shared.Client.SchedulingV1beta1().PodGroups(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, group := range groups.Items {
			if group.Name == job {
				return false
			}
		}
		return len(podsOf(t, namespace, job)) == 0
	})
	t.Logf("%s has no pods, and no PodGroup", job)
}

// remove deletes a job and waits until its pods are deleted.
func remove(t *testing.T, namespace, job string) {
	t.Helper()
	err := shared.Dynamic.Resource(trainJobs).Namespace(namespace).Delete(t.Context(), job, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	testcluster.Within(
		t,
		30*time.Second,
		"the end of the pods of "+job,
		func() bool { return len(podsOf(t, namespace, job)) == 0 },
	)
}
