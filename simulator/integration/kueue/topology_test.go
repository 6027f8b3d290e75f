package kueue_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/integration/testcluster"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// racks is a queue whose flavor has a topology that stops at the rack: Kueue chooses racks, and leaves the nodes in
// them to a scheduler.
const racks = `apiVersion: v1
kind: Namespace
metadata: {name: racks}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: racks}
spec:
  levels:
  - nodeLabel: fabric.topograph.run/tier-0
  - nodeLabel: accelerator.topograph.run/domain
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: racks}
spec:
  topologyName: racks
  nodeLabels: {nvidia.com/gpu.product: NVIDIA-GB200}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: racks}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: racks, resources: [{name: nvidia.com/gpu, nominalQuota: 288}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: racks, namespace: racks}
spec: {clusterQueue: racks}
`

// rackJob is a job of that queue that requires one rack, in Kueue's words, on whole nodes.
func rackJob(name string, nodes int, runTime string) string {
	return fmt.Sprintf(`---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata:
  name: %s
  namespace: racks
  labels: {kueue.x-k8s.io/queue-name: racks}
  annotations: {simulator.lockstep.dev/run-time: %s}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: %d, resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
  runtimePatches:
  - manager: platform.example.com/topology
    trainingRuntimeSpec:
      template:
        spec:
          replicatedJobs:
          - name: node
            template:
              spec:
                template:
                  metadata:
                    annotations: {kueue.x-k8s.io/podset-required-topology: accelerator.topograph.run/domain}
`, name, runTime, nodes)
}

// Kueue's topology-aware scheduling pins each gang to a rack, and lockstep-scheduler places it inside: whole, with its
// ranks in the order of the nodes.
func TestTopology_KueuePinsTheRackAndLockstepPlacesInside(t *testing.T) {
	h := record(t, "racks")
	sizes := map[string]int{"wide": 16, "broad": 12, "narrow": 5}
	done := play(t, write(t, racks+rackJob("wide", 16, "15s")+rackJob("broad", 12, "15s")+rackJob("narrow", 5, "15s")))
	used := map[string][]string{}
	for _, job := range slices.Sorted(maps.Keys(sizes)) {
		admitted, _ := h.next(t, 0, job, "admitted", state.admitted)
		show(t, admitted)
		rack := pinned(t, "racks", job)
		used[rack] = append(used[rack], job)
		expectInOrder(t, job, sizes[job], rack)
	}
	t.Logf("racks and jobs: %v", used)
	for job, ended := range <-done {
		if ended.Outcome != summary.Complete || len(ended.Ranks) != sizes[job] {
			t.Errorf("%s: %+v, want %d ranks that completed", job, ended, sizes[job])
		}
	}
}

// pinned waits for the one rack that Kueue has assigned to all pods of a job.
func pinned(t *testing.T, namespace, job string) string {
	t.Helper()
	var workload unstructured.Unstructured
	testcluster.Within(t, 20*time.Second, "a topology assignment of "+job, func() bool {
		list, err := shared.Dynamic.Resource(workloads).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			if owners := item.GetOwnerReferences(); len(owners) == 1 && owners[0].Name == job {
				workload = item
			}
		}
		assignments, _, _ := unstructured.NestedSlice(workload.Object, "status", "admission", "podSetAssignments")
		return len(assignments) == 1
	})
	assignments, _, _ := unstructured.NestedSlice(workload.Object, "status", "admission", "podSetAssignments")
	content, err := yaml.Marshal(assignments)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("Workload %s is assigned:\n%s", workload.GetName(), content)
	assignment := assignments[0].(map[string]any)
	levels, _, _ := unstructured.NestedStringSlice(assignment, "topologyAssignment", "levels")
	slicesOf, _, _ := unstructured.NestedSlice(assignment, "topologyAssignment", "slices")
	if len(slicesOf) != 1 || len(levels) == 0 || levels[len(levels)-1] != domainLabel {
		t.Fatalf("Kueue assigns %s %d slices at %v, want one rack", job, len(slicesOf), levels)
	}
	values, _, _ := unstructured.NestedSlice(slicesOf[0].(map[string]any), "valuesPerLevel")
	rack, _, _ := unstructured.NestedString(values[len(values)-1].(map[string]any), "universal")
	if rack == "" {
		t.Fatalf("Kueue assigns %s no one rack: %v", job, values)
	}
	return rack
}

// expectInOrder waits until all pods of a job run, and fails the test unless they are one gang in that rack, without
// gates, with ranks in the order of the nodes.
func expectInOrder(t *testing.T, job string, count int, rack string) {
	t.Helper()
	var pods []corev1.Pod
	testcluster.Within(t, 20*time.Second, fmt.Sprintf("%d running pods of %s", count, job), func() bool {
		pods = slices.DeleteFunc(
			podsOf(t, "racks", job),
			func(pod corev1.Pod) bool { return pod.Status.Phase != corev1.PodRunning },
		)
		return len(pods) == count
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(rankOf(t, a), rankOf(t, b)) })
	nodes, gangs := make([]string, len(pods)), map[string]bool{}
	for i, pod := range pods {
		nodes[i] = pod.Spec.NodeName
		gangs[gangapi.GroupOf(pod.ObjectMeta, pod.Spec)] = true
		if pod.Spec.NodeSelector[domainLabel] != rack || !strings.HasPrefix(pod.Spec.NodeName, rack+"-tray-") {
			t.Errorf(
				"%s selects %v and is on %s, want it in %s",
				pod.Name,
				pod.Spec.NodeSelector,
				pod.Spec.NodeName,
				rack,
			)
		}
		if len(pod.Spec.SchedulingGates) > 0 || pod.Spec.SchedulerName != "lockstep-scheduler" {
			t.Errorf("%s has gates %v and is %s's", pod.Name, pod.Spec.SchedulingGates, pod.Spec.SchedulerName)
		}
	}
	t.Logf("%s: rack %s by Kueue, nodes by lockstep-scheduler in order of rank: %v", job, rack, nodes)
	if !slices.IsSorted(nodes) || len(slices.Compact(nodes)) != count {
		t.Errorf("the ranks of %s are on %v, want %d nodes in order", job, nodes, count)
	}
	if len(gangs) != 1 || gangs[""] {
		t.Errorf("the pods of %s are in gangs %v, want one", job, gangs)
	}
}

func rankOf(t *testing.T, pod corev1.Pod) int {
	t.Helper()
	rank, err := strconv.Atoi(pod.Labels["batch.kubernetes.io/job-completion-index"])
	if err != nil {
		t.Fatalf("%s has no rank: %v", pod.Name, err)
	}
	return rank
}
