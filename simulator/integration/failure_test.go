package integration_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
)

// pairLabel marks two nodes that jobs of these tests compete for.
const pairLabel = "test.lockstep.dev/pair"

// onPair is a TrainJob of whole nodes among the two that are marked.
func onPair(name string, nodes int, runTime string, annotations ...string) string {
	return fmt.Sprintf(`apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: %s
  namespace: NAMESPACE
  annotations: {simulator.lockstep.dev/run-time: %s%s}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: %d, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
  runtimePatches:
  - manager: test.lockstep.dev/pair
    trainingRuntimeSpec: {template: {spec: {replicatedJobs: [
      {name: node, template: {spec: {template: {spec: {nodeSelector: {%s: %s}}}}}}]}}}
`, name, runTime, strings.Join(append([]string{""}, annotations...), ", "), nodes, pairLabel, "NAMESPACE")
}

// savesFirst is a job of onPair whose programs take five seconds to end when their pods are deleted, as trainers that
// save do. The scheduler has that long to mark the ranks before the Job reads their exit codes.
func savesFirst(job string) string {
	return strings.Replace(job, "template: {spec: {nodeSelector:",
		"template: {metadata: {annotations: {simulator.lockstep.dev/stop-time: 5s}}, spec: {nodeSelector:", 1)
}

// markPair marks two nodes without pods until the test ends.
func markPair(t *testing.T) {
	t.Helper()
	nodes, err := shared.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := shared.Client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var marked []string
	for _, node := range nodes.Items {
		used := slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == node.Name })
		if gpus := node.Status.Allocatable[gpu]; used || gpus.Value() < 4 || len(marked) == 2 {
			continue
		}
		marked = append(marked, node.Name)
		label(t, node.Name, fmt.Sprintf("%q", namespaceOf(t)))
	}
	if len(marked) < 2 {
		t.Fatal("no two nodes are idle")
	}
	t.Cleanup(func() {
		for _, node := range marked {
			label(t, node, "null")
		}
	})
}

func label(t *testing.T, node, value string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, pairLabel, value)
	ctx := context.WithoutCancel(t.Context()) // it has ended when a cleanup runs
	if _, err := shared.Client.CoreV1().
		Nodes().
		Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
}

// exit ends a rank as a kubelet reports it.
func exit(t *testing.T, pod corev1.Pod, code int32, message string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"phase": corev1.PodFailed,
		"containerStatuses": []corev1.ContainerStatus{{
			Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: code, Reason: "Error", Message: message, FinishedAt: metav1.Now(),
			}},
		}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = shared.Client.CoreV1().Pods(pod.Namespace).
		Patch(t.Context(), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		t.Fatal(err)
	}
}

// failureOf is status.scheduling.lastFailure of a TrainJob, nil if it has none.
func failureOf(t *testing.T, namespace, job string) map[string]any {
	t.Helper()
	failure, _, err := unstructured.NestedMap(trainJob(t, namespace, job).Object, "status", "scheduling", "lastFailure")
	if err != nil {
		t.Fatal(err)
	}
	return failure
}

func scheduledAt(pod corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// A rank that exits takes all ranks with it, and none of them loses its place to a job that was waiting: all start
// again together, where they were. The TrainJob names the rank and its exit code.
func TestFailure_GangKeepsItsPlace(t *testing.T) {
	namespace := namespaceOf(t)
	markPair(t)
	submit(t, onPair("crash", 2, "10m"))
	before := newRunners(t, namespace, "crash", 2, nil)
	submitMore(t, onPair("thief", 1, "10m"))
	testcluster.Within(t, 30*time.Second, "the thief's refusal", func() bool {
		pods := podsOf(t.Context(), t, namespace, "thief")
		return len(pods) == 1 && slices.ContainsFunc(pods[0].Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse
		})
	})
	exit(t, before[1], 3, "Traceback (most recent call last):\nValueError: no data")
	crashed := time.Now()
	after := newRunners(t, namespace, "crash", 2, before)
	t.Logf("both ranks run again %v after the crash", time.Since(crashed).Round(time.Millisecond))
	if apart := scheduledAt(after[0]).Sub(scheduledAt(after[1])).Abs(); apart > testcluster.Patience(5*time.Second) {
		t.Errorf("the ranks got their nodes %v apart", apart)
	}
	for i, pod := range after {
		if other := after[1-i]; scheduledAt(pod).Before(other.CreationTimestamp.Time) {
			t.Errorf("%s got its node before there was %s", pod.Name, other.Name)
		}
	}
	for _, pod := range podsOf(t.Context(), t, namespace, "thief") {
		if pod.Spec.NodeName != "" {
			t.Errorf("the thief is on %s", pod.Spec.NodeName)
		}
	}
	testcluster.Within(t, 30*time.Second, "the failure in the TrainJob's status", func() bool {
		failure := failureOf(t, namespace, "crash")
		return failure["rank"] == int64(1) && failure["exitCode"] == int64(3) && failure["pod"] == before[1].Name &&
			failure["node"] == before[1].Spec.NodeName &&
			failure["message"] == "Traceback (most recent call last):\nValueError: no data"
	})
	if counted := number(t, namespace, "crash", "restartsCountTowardsMax"); counted != 1 {
		t.Errorf("%d restarts are counted", counted)
	}
	testcluster.Within(t, 30*time.Second, "the Event", func() bool {
		events, err := shared.Client.EventsV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range events.Items {
			if event.Regarding.Kind == "TrainJob" && event.Reason == "RankFailed" &&
				strings.Contains(event.Note, "container node ended with exit code 3 (Error): Traceback") {
				return true
			}
		}
		return false
	})
}

// At its deadline a job's pods are deleted at once. Their termination messages are in an Event on the TrainJob and in
// its status, because their logs are deleted.
func TestFailure_LastWordsAtTheDeadline(t *testing.T) {
	namespace := namespaceOf(t)
	submit(t, `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: overdue
  namespace: NAMESPACE
  annotations: {simulator.lockstep.dev/run-time: 10m}
spec:
  runtimeRef: {name: torch-distributed}
  activeDeadlineSeconds: 30
  trainer: {numNodes: 2}
  runtimePatches:
  - manager: test.lockstep.dev/words
    trainingRuntimeSpec: {template: {spec: {replicatedJobs: [
      {name: node, template: {spec: {template: {metadata: {annotations: {
        simulator.lockstep.dev/last-words: "step 12: waiting for rank 1"}}}}}}]}}}
`)
	newRunners(t, namespace, "overdue", 2, nil)
	testcluster.Within(t, 60*time.Second, "the last words", func() bool {
		failure := failureOf(t, namespace, "overdue")
		return failure["message"] == "step 12: waiting for rank 1" && failure["exitCode"] == int64(143)
	})
	testcluster.Within(t, 30*time.Second, "the Event", func() bool {
		events, err := shared.Client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.Kind == "TrainJob" && e.Reason == "RankFailed" && !e.FirstTimestamp.IsZero() &&
				strings.Contains(e.Message, "step 12: waiting for rank 1")
		})
	})
	testcluster.Within(t, 30*time.Second, "the end of the pods", func() bool {
		return len(podsOf(t.Context(), t, namespace, "overdue")) == 0
	})
}

// A rank that is deleted is a disruption: all start again, in their place, and it is not counted.
func TestFailure_DeletedRank(t *testing.T) {
	namespace := namespaceOf(t)
	markPair(t)
	submit(t, savesFirst(onPair("robbed", 2, "10m")))
	before := newRunners(t, namespace, "robbed", 2, nil)
	submitMore(t, onPair("thief", 1, "10m"))
	if err := shared.Client.CoreV1().
		Pods(namespace).
		Delete(t.Context(), before[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	newRunners(t, namespace, "robbed", 2, before)
	for _, pod := range podsOf(t.Context(), t, namespace, "thief") {
		if pod.Spec.NodeName != "" {
			t.Errorf("the thief is on %s", pod.Spec.NodeName)
		}
	}
	all := number(t, namespace, "robbed", "restarts")
	counted := number(t, namespace, "robbed", "restartsCountTowardsMax")
	if all != 1 || counted != 0 {
		t.Errorf("%d restarts, %d of them counted", all, counted)
	}
	if failure := failureOf(t, namespace, "robbed"); failure != nil {
		t.Errorf("the TrainJob says that %v failed", failure)
	}
}

// The exit code decides whether ranks start again, and lockstep.dev/max-restarts limits the restarts.
func TestFailure_EndsTheJob(t *testing.T) {
	for name, c := range map[string]struct {
		annotation string
		codes      []int32
	}{
		"fatal":   {`lockstep.dev/exit-codes: "3=fatal, *=retry"`, []int32{1, 3}},
		"onlyone": {`lockstep.dev/max-restarts: "1"`, []int32{1, 1}},
		"none":    {`lockstep.dev/max-restarts: "0"`, []int32{9}},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := namespaceOf(t)
			markPair(t)
			submit(t, onPair(name, 2, "10m", c.annotation))
			var before []corev1.Pod
			for _, code := range c.codes {
				ranks := newRunners(t, namespace, name, 2, before)
				before = append(before, ranks...)
				exit(t, ranks[0], code, "")
			}
			testcluster.Within(t, 60*time.Second, "the job's failure", func() bool {
				return slices.Contains(conditionsOf(t.Context(), t, namespace, name), "Failed")
			})
			testcluster.Within(t, 30*time.Second, "the failure in the TrainJob's status", func() bool {
				failure := failureOf(t, namespace, name)
				return failure["exitCode"] == int64(c.codes[len(c.codes)-1]) && failure["rank"] == int64(0)
			})
		})
	}
}

// A rank that a kubelet refuses is no failure of the job: all start again, elsewhere, and it is not counted. The
// scheduler has marked the rank before the Job's controller reads it, for which it has about a second otherwise.
func TestFailure_RefusedRank(t *testing.T) {
	namespace := namespaceOf(t)
	submit(
		t,
		strings.Replace(onPair("refused", 2, "10m"), "nodeSelector: {"+pairLabel+": NAMESPACE}", "nodeSelector: {}", 1),
	)
	before := newRunners(t, namespace, "refused", 2, nil)
	patch := []byte(
		`{"status":{"phase":"Failed","reason":"OutOfnvidia.com/gpu","message":"Pod was rejected","containerStatuses":null}}`,
	)
	resume := pause(t, "kube-controller-manager")
	defer resume() // twice does no harm
	if _, err := shared.Client.CoreV1().Pods(namespace).
		Patch(t.Context(), before[1].Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reports(t, before[1].Spec.NodeName) })
	testcluster.Within(t, 20*time.Second, "the mark of the refused rank", func() bool {
		pods := podsOf(t.Context(), t, namespace, "refused")
		return slices.ContainsFunc(pods, func(p corev1.Pod) bool {
			return p.UID == before[1].UID && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
			})
		})
	})
	resume()
	newRunners(t, namespace, "refused", 2, before)
	all, counted := number(
		t,
		namespace,
		"refused",
		"restarts",
	), number(
		t,
		namespace,
		"refused",
		"restartsCountTowardsMax",
	)
	if all != 1 || counted != 0 {
		t.Errorf("%d restarts, %d of them counted", all, counted)
	}
}

// Ranks of a gang that is suspended end by a signal, with any exit code: that is no failure, counts as none, and is not
// even fatal if that exit code is. A kubelet takes its time with a pod that has ended; here a finalizer does, or the
// pod would be deleted before it was seen.
func TestFailure_SuspensionIsNone(t *testing.T) {
	for name, annotations := range map[string][]string{
		"plain": nil,
		"fatal": {`lockstep.dev/exit-codes: "143=fatal, *=retry"`},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := namespaceOf(t)
			markPair(t)
			submit(t, savesFirst(onPair(name, 2, "10m", annotations...)))
			before := newRunners(t, namespace, name, 2, nil)
			stays(t, before[0], append(before[0].Finalizers, "test.lockstep.dev/stays"))
			t.Cleanup(func() { stays(t, before[0], nil) })
			suspendGang(t, name, true)
			testcluster.Within(t, 30*time.Second, "the end of the ranks", func() bool {
				pods := podsOf(t.Context(), t, namespace, name)
				return len(pods) == 1 && pods[0].Status.Phase == corev1.PodFailed && pods[0].DeletionTimestamp != nil
			})
			jobs := shared.Client.BatchV1().Jobs(namespace)
			for range 8 { // longer than the Job controller gathers changes
				time.Sleep(500 * time.Millisecond)
				list, err := jobs.List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for _, c := range list.Items[0].Status.Conditions {
					if c.Type == batchv1.JobFailureTarget || c.Type == batchv1.JobFailed {
						t.Fatalf("the Job that is suspended has %s: %s", c.Type, c.Message)
					}
				}
			}
			stays(t, before[0], nil)
			suspendGang(t, name, false)
			for _, pod := range newRunners(t, namespace, name, 2, before) {
				if attempt := pod.Labels["jobset.sigs.k8s.io/restart-attempt"]; attempt != "0" {
					t.Errorf("%s is of attempt %s", pod.Name, attempt)
				}
			}
		})
	}
}

// stays gives a pod finalizers; with none it does not stay when it is deleted.
func stays(t *testing.T, pod corev1.Pod, finalizers []string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": finalizers}})
	if err == nil {
		_, err = shared.Client.CoreV1().Pods(pod.Namespace).
			Patch(context.WithoutCancel(t.Context()), pod.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	}
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}
