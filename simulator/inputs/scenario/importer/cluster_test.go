package importer_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/simulator/inputs/trace"
)

// now is the time of all snapshots of these tests.
const now = "2026-11-22T12:00:00Z"

// node is a node with 8 GPUs in a rack; more are further fields below metadata, spec or status.
func node(name, rack, more string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Node
metadata: {name: %s, labels: {fabric.topograph.run/tier-0: %s, hall: %s}}
status:
  allocatable: {cpu: "64", memory: 512Gi, pods: "110", nvidia.com/gpu: "8"}
  conditions: [{type: Ready, status: "True", lastHeartbeatTime: %q}]
%s`, name, rack, rack[:1], now, more)
}

// pod is a pod that asks for GPUs; more stands in its spec.
func pod(name string, gpus int, more, status string) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: ml, uid: %s, creationTimestamp: "2026-11-22T11:00:00Z", labels: {batch.kubernetes.io/job-completion-index: %q}}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: "2", nvidia.com/gpu: "%d"}}}]
%s%s`, name, name, name[len(name)-1:], gpus, more, status)
}

// member is a pod of a gang.
func member(gang string, rank, gpus int, more, status string) string {
	return pod(
		fmt.Sprintf("%s-%d", gang, rank),
		gpus,
		fmt.Sprintf("  schedulingGroup: {podGroupName: %s}\n%s", gang, more),
		status,
	)
}

// gang is a PodGroup of two; annotations are its, without the prefix of ours.
func gang(name string, priority int, annotations ...string) string {
	var text strings.Builder
	fmt.Fprintf(&text, `---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata:
  name: %s
  namespace: ml
  creationTimestamp: "2026-11-22T11:00:00Z"
  annotations: {note: none`, name)
	for _, a := range annotations {
		key, value, _ := strings.Cut(a, "=")
		fmt.Fprintf(&text, ", lockstep.dev/%s: %q", key, value)
	}
	fmt.Fprintf(&text, "}\nspec: {priority: %d, schedulingPolicy: {gang: {minCount: 2}}}\n", priority)
	return text.String()
}

// racks are four nodes in two racks.
func racks() string {
	return node("a1", "a-rack", "") + node("a2", "a-rack", "") + node("b1", "b-rack", "") + node("b2", "b-rack", "")
}

func on(node string) string { return "  nodeName: " + node + "\n" }

func taken(t *testing.T, text string) *capture.Snapshot {
	t.Helper()
	snap, err := capture.ReadObjects([]byte(text), "cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return &snap
}

func from(t *testing.T, text string, tr *trace.Trace, o scenario.Options) *scenario.Scenario {
	t.Helper()
	s, err := importer.FromSnapshot(taken(t, text), tr, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// noted reports whether a note has the text.
func noted(s *scenario.Scenario, text string) bool {
	return strings.Contains(strings.Join(s.Notes, "\n"), text)
}

// free are the GPUs that are free on each node, by its name's order.
func free(s *scenario.Scenario) []int64 {
	var out []int64
	for _, name := range []string{"a1", "a2", "b1", "b2"} {
		at, _ := s.Ledger.Tree.Index(name)
		out = append(out, s.Ledger.Free[at][s.Accelerator])
	}
	return out
}
