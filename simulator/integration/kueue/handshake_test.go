package kueue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// checkAfter is the time that a job of a queue with Lockstep's AdmissionCheck may wait for nodes.
const checkAfter = 8 * time.Second

// checked is a queue with Lockstep's AdmissionCheck, whose flavor has a topology of the two racks with the label pool.
const checked = `apiVersion: v1
kind: Namespace
metadata: {name: checked}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: lockstep-nodes}
spec: {controllerName: lockstep.dev/nodes}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: pool}
spec: {levels: [{nodeLabel: example.com/pool}, {nodeLabel: accelerator.topograph.run/domain}]}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: checked}
spec: {topologyName: pool, nodeLabels: {example.com/pool: checked}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: checked}
spec:
  namespaceSelector: {}
  admissionChecksStrategy: {admissionChecks: [{name: lockstep-nodes}]}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: checked, resources: [{name: nvidia.com/gpu, nominalQuota: 144}]}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: checked, namespace: checked}
spec: {clusterQueue: checked}
`

// Kueue pins a gang to a rack that looks free to it, and that Lockstep has reserved for a job without a queue. Lockstep
// reports this by its AdmissionCheck; Kueue takes the admission back, and admits the gang in the other rack once that
// is the one with room. Without the check the gang would hold its quota, and wait in the first rack, as long as the
// other job runs.
func TestAdmissionCheck_GangMovesToTheRackWithRoom(t *testing.T) {
	for _, rack := range []string{"rack-3", "rack-4"} {
		labelRack(t, rack)
	}
	h := record(t, "checked")
	_, _ = shared.Submit(t, write(t, checked+
		nodesJob(
			"checked",
			"tenant",
			"rack-3",
			"10m",
			1,
			"",
		)+nodesJob("checked", "filler", "rack-4", "10m", 18, "")))
	expectRunning(t, "checked", "tenant", 1)
	expectRunning(t, "checked", "filler", 18)
	_, _ = shared.Submit(
		t,
		write(t, strings.TrimPrefix(nodesJob("checked", "whole", "rack-3", "10m", 18, ""), "---\n")),
	)
	reserved, _ := h.next(t, 0, "whole", "waits behind a reservation of the whole rack", state.reserved)
	logQueue(t, reserved)

	gang := strings.ReplaceAll(
		strings.TrimPrefix(rackJob("gang", 16, "5s"), "---\n"),
		"queue-name: racks",
		"queue-name: checked",
	)
	done := play(t, write(t, strings.Replace(gang, "namespace: racks", "namespace: checked", 1)))
	_, at := h.next(t, 0, "gang", "admitted", state.admitted)
	if rack := pinned(t, "checked", "gang"); rack != "rack-3" {
		t.Fatalf("Kueue pins the gang to %s, want the rack that looks free to it", rack)
	}
	waits, at := h.next(t, at, "gang", "waits for nodes", state.waiting)
	logQueue(t, waits)
	remove(t, "checked", "tenant")
	expectRunning(t, "checked", "whole", 18)
	remove(t, "checked", "filler")

	evicted, at := h.next(t, at, "gang", "evicted: suspended, and nothing of it is active", state.quiet)
	if held := evicted.at - waits.at; held > 2*checkAfter {
		t.Errorf("the gang held its quota for %s after it began to wait, want about %s", held, checkAfter)
	}
	_, at = h.next(t, at, "gang", "its admission is taken back", state.withdrawn)
	expectEviction(t, "checked", "gang", "AdmissionCheck")
	logChecks(t, "checked", "gang")
	_, at = h.next(t, at, "gang", "admitted again", state.admitted)
	if rack := pinned(t, "checked", "gang"); rack != "rack-4" {
		t.Errorf("Kueue pins the gang to %s, want the rack with room", rack)
	}
	_, _ = h.next(t, at, "gang", "complete", state.complete)
	if job := (<-done)["gang"]; job.Outcome != summary.Complete || len(job.Ranks) != 16 {
		t.Errorf("%+v, want 16 ranks that completed", job)
	}
	logChecks(t, "checked", "gang")
	remove(t, "checked", "whole")
}

// waiting reports whether lockstep-scheduler has found no nodes for the job.
func (s state) waiting() bool {
	conditions, _, _ := unstructured.NestedSlice(s.object, "status", "scheduling", "conditions")
	return !s.suspended() && slices.ContainsFunc(conditions, func(entry any) bool {
		condition := entry.(map[string]any)
		return condition["type"] == "Queued" && condition["status"] == "True" && condition["reason"] != "NoPods" &&
			condition["reason"] != "NotSeen"
	})
}

// logChecks writes the states of the AdmissionChecks of a job's Workload.
func logChecks(t *testing.T, namespace, job string) {
	t.Helper()
	workload, _ := workloadOf(t, namespace, job)
	states, _, _ := unstructured.NestedSlice(workload.Object, "status", "admissionChecks")
	for _, entry := range states {
		state := entry.(map[string]any)
		t.Logf("check %v: %v, retries %v: %v", state["name"], state["state"], state["retryCount"], state["message"])
	}
}

// labelRack puts the nodes of a rack into the pool until the test ends.
func labelRack(t *testing.T, rack string) {
	t.Helper()
	set := func(ctx context.Context, value string) {
		nodes, err := shared.Client.CoreV1().
			Nodes().
			List(ctx, metav1.ListOptions{LabelSelector: domainLabel + "=" + rack})
		if err != nil || len(nodes.Items) == 0 {
			t.Fatalf("%d nodes of %s: %v", len(nodes.Items), rack, err)
		}
		patch := fmt.Sprintf(`{"metadata":{"labels":{"example.com/pool":%s}}}`, value)
		for _, node := range nodes.Items {
			_, err := shared.Client.CoreV1().
				Nodes().
				Patch(ctx, node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	set(t.Context(), `"checked"`)
	t.Cleanup(func() { set(context.WithoutCancel(t.Context()), "null") })
}
