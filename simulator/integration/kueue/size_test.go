package kueue_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// smallQueue is a queue of sixteen GPUs, in a namespace of its own, with a job that holds all of them.
const smallQueue = `apiVersion: v1
kind: Namespace
metadata: {name: sized}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: sized}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: sized}
spec:
  namespaceSelector: {}
  preemption: {withinClusterQueue: LowerPriority}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: sized, resources: [{name: nvidia.com/gpu, nominalQuota: 16}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: sized, namespace: sized}
spec: {clusterQueue: sized}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: WorkloadPriorityClass
metadata: {name: sized-high}
value: 1000
description: Preempts what names no class.
`

// sizedJob is a job of the queue with four GPUs on each of its nodes.
func sizedJob(name, labels string, nodes int) string {
	return fmt.Sprintf(`---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: %s
  namespace: sized
  labels: {kueue.x-k8s.io/queue-name: sized%s}
  annotations: {simulator.lockstep.dev/run-time: 10s}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: %d, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
`, name, labels, nodes)
}

// size is Kueue's count of a job, and its pods' sum.
type size struct{ pods, gpus int64 }

// A job changes its size while it waits in Kueue's queue, or after Kueue has preempted it. Kueue counts the new size,
// and admits the job with it, when the old one would not have fitted, and not when the new one does not fit.
func TestSuspendedJob_AnotherSizeIsAdmitted(t *testing.T) {
	h := record(t, "sized")
	low := play(t, write(t, smallQueue+sizedJob("preempted", "", 4)))
	_, at := h.next(t, 0, "preempted", "admitted", state.admitted)
	expectSize(t, "preempted", size{4, 4})
	high := play(t, write(t, strings.TrimPrefix(
		sizedJob("holder", ", kueue.x-k8s.io/priority-class: sized-high", 4)+sizedJob("nodes", "", 5)+
			sizedJob("resources", "", 2)+sizedJob("bigger", "", 1), "---\n")))
	_, at = h.next(t, at, "preempted", "preempted", state.withdrawn)
	_, at = h.next(t, at, "holder", "admitted in its place", state.admitted)
	for _, name := range []string{"nodes", "resources", "bigger"} {
		expectCounted(t, name, map[string]size{"nodes": {5, 4}, "resources": {2, 4}, "bigger": {1, 4}}[name])
	}

	// A running job is not resized: nothing of it would change.
	if err := resize(t, "holder", `{"numNodes":2}`); err == nil || !strings.Contains(err.Error(), "spec.trainer") {
		t.Errorf("a running job was resized: %v", err)
	}
	want := map[string]size{"preempted": {1, 4}, "nodes": {2, 4}, "resources": {2, 1}, "bigger": {5, 4}}
	for name, change := range map[string]string{
		"preempted": `{"numNodes":1}`, "nodes": `{"numNodes":2}`, "bigger": `{"numNodes":5}`,
		"resources": `{"resourcesPerNode":{"limits":{"nvidia.com/gpu":"1"}}}`,
	} {
		if err := resize(t, name, change); err != nil {
			t.Fatalf("Kueue or Lockstep refuses another size of %s: %v", name, err)
		}
		expectCounted(t, name, want[name])
	}
	now := at
	for _, name := range []string{"preempted", "nodes", "resources"} {
		_, to := h.next(t, at, name, "admitted with its new size", state.admitted)
		expectSize(t, name, want[name])
		now = max(now, to)
	}
	h.never(t, at, now, "bigger", "admitted", state.admitted)
	if err := resize(t, "bigger", `{"numNodes":4}`); err != nil {
		t.Fatal(err)
	}
	_, end := h.next(t, at, "bigger", "admitted when it fits", state.admitted)
	expectSize(t, "bigger", size{4, 4})
	_, _ = h.next(t, end, "bigger", "complete", state.complete)
	ended := <-high
	ended["preempted"] = (<-low)["preempted"]
	for name, job := range ended {
		if job.Outcome != summary.Complete {
			t.Errorf("%s: %+v, want complete", name, job)
		}
	}
}

// resize changes the size of a job by a merge patch of its trainer.
func resize(t *testing.T, name, trainer string) error {
	t.Helper()
	_, err := shared.Dynamic.Resource(trainJobs).Namespace("sized").Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"spec":{"trainer":`+trainer+`}}`), metav1.PatchOptions{})
	return err
}

// expectCounted waits until Kueue's one Workload of a job has that size.
func expectCounted(t *testing.T, job string, want size) {
	t.Helper()
	var counted []size
	testcluster.Within(t, 20*time.Second, fmt.Sprintf("a Workload of %s of %+v", job, want), func() bool {
		list, err := shared.Dynamic.Resource(workloads).Namespace("sized").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		counted = nil
		for _, item := range list.Items {
			owners := item.GetOwnerReferences()
			if len(owners) == 1 && owners[0].Name == job && item.GetDeletionTimestamp() == nil {
				counted = append(counted, sizeOf(t, item))
			}
		}
		return len(counted) == 1 && counted[0] == want
	})
	t.Logf("Kueue counts %d pods of %s with %d GPUs each", counted[0].pods, job, counted[0].gpus)
}

// sizeOf is the size of a Workload of one podset.
func sizeOf(t *testing.T, workload unstructured.Unstructured) size {
	t.Helper()
	sets, _, _ := unstructured.NestedSlice(workload.Object, "spec", "podSets")
	if len(sets) != 1 {
		t.Fatalf("Workload %s has %d podsets", workload.GetName(), len(sets))
	}
	set := sets[0].(map[string]any)
	count, _, _ := unstructured.NestedInt64(set, "count")
	containers, _, _ := unstructured.NestedSlice(set, "template", "spec", "containers")
	counted := size{pods: count}
	for _, container := range containers {
		limits, _, _ := unstructured.NestedMap(container.(map[string]any), "resources", "limits")
		if text, ok := limits["nvidia.com/gpu"]; ok {
			gpus := resource.MustParse(fmt.Sprint(text))
			counted.gpus = gpus.Value()
		}
	}
	return counted
}

// expectSize waits until a job has pods of that size that run, and no others.
func expectSize(t *testing.T, job string, want size) {
	t.Helper()
	testcluster.Within(t, 20*time.Second, fmt.Sprintf("pods of %s of %+v", job, want), func() bool {
		pods := podsOf(t, "sized", job)
		for _, pod := range pods {
			gpus := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]
			if pod.Status.Phase != corev1.PodRunning || gpus.Value() != want.gpus {
				return false
			}
		}
		return int64(len(pods)) == want.pods
	})
	t.Logf("%d pods of %s run with %d GPUs each", want.pods, job, want.gpus)
}
