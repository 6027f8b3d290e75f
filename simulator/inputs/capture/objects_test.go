package capture_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/manifests/gangapi"
	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/capture"
)

// recording is a file as kwokctl snapshot record writes it: the state, then the changes.
const recording = `apiVersion: v1
kind: Namespace
metadata: {name: default, creationTimestamp: "2026-11-20T10:00:00Z"}
---
apiVersion: v1
kind: Node
metadata: {name: node-2, uid: two, creationTimestamp: "2026-11-20T10:00:00Z", managedFields: [{manager: kwok, time: "2026-11-20T11:00:00Z"}]}
status:
  allocatable: {cpu: "8", nvidia.com/gpu: "8"}
  conditions: [{type: Ready, status: "True", lastHeartbeatTime: "2026-11-20T12:00:07Z"}]
---
apiVersion: v1
kind: Node
metadata: {name: node-1}
status: {allocatable: {cpu: "8", nvidia.com/gpu: "8"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-root-ca.crt, namespace: default}
data: {secret: hunter2}
---
apiVersion: scheduling.k8s.io/v1alpha1
kind: PodGroup
metadata: {name: old, namespace: default}
---
apiVersion: v1
kind: Pod
metadata: {name: over, namespace: default}
spec: {nodeName: node-1, containers: [{name: c, image: i}]}
status: {phase: Succeeded}
---
apiVersion: v1
kind: Pod
metadata: {name: runs, namespace: default}
spec: {nodeName: node-1, containers: [{name: c, image: i, env: [{name: TOKEN, value: hunter2}]}]}
status: {phase: Running, startTime: "2026-11-20T11:30:00Z"}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: nodes}
target: {name: node-3}
durationNanosecond: 90000000000
method: create
template: {apiVersion: v1, kind: Node, metadata: {name: node-3}, status: {allocatable: {cpu: "8", nvidia.com/gpu: "8"}}}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: nodes}
target: {name: node-2}
durationNanosecond: 60000000000
method: delete
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {version: v1, resource: nodes}
target: {name: node-1}
durationNanosecond: 61000000000
method: patch
template: {status: {conditions: []}}
---
apiVersion: action.kwok.x-k8s.io/v1alpha1
kind: ResourcePatch
resource: {group: apps, version: v1, resource: deployments}
target: {name: d, namespace: default}
durationNanosecond: 62000000000
method: delete
`

// write puts a text into a file.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A recording of kwokctl's is a snapshot: ordered, without ended or secret objects, dated by its objects, and with the
// nodes that were added and removed. Documents that are not read are counted.
func TestReadFile_KwokctlRecordings(t *testing.T) {
	for name, text := range map[string]string{"cluster.yaml": recording, "cluster.yaml.gz": compressed(t, recording)} {
		s, err := capture.ReadFile(write(t, name, text))
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Nodes) != 2 || s.Nodes[0].Name != "node-1" || s.Nodes[1].ManagedFields != nil ||
			len(s.Namespaces) != 1 || len(s.Pods) != 1 || s.Pods[0].Name != "runs" ||
			s.Pods[0].Spec.Containers[0].Env[0].Value != "" {
			t.Errorf("nodes %v, pods %v", s.Nodes, s.Pods)
		}
		want := time.Date(2026, 11, 20, 12, 0, 7, 0, time.UTC)
		if !s.Manifest.Taken.Equal(want) || s.Manifest.Format != capture.FormatObjects {
			t.Errorf("taken at %s, format %s", s.Manifest.Taken, s.Manifest.Format)
		}
		if len(s.Changes) != 2 || s.Changes[0] != (capture.Change{At: time.Minute, Name: "node-2"}) ||
			s.Changes[1].At != 90*time.Second || s.Changes[1].Node == nil || s.Changes[1].Node.Name != "node-3" {
			t.Errorf("changes %+v", s.Changes)
		}
		warnings := strings.Join(s.Warnings, "\n")
		for _, want := range []string{
			name + ": 1 podgroups of scheduling.k8s.io/v1alpha1 (only scheduling.k8s.io/v1beta1 can be read) are not read",
			"1 recorded changes (patch of nodes) are not read", "1 recorded changes (delete of deployments) are not read",
		} {
			if !strings.Contains(warnings, want) {
				t.Errorf("%q is not in\n%s", want, warnings)
			}
		}
		missing := s.Missing()
		if !slices.Contains(missing, "podgroups") || slices.Contains(missing, "pods") ||
			slices.Contains(missing, "trainjobs") {
			t.Errorf("missing: %v", missing)
		}
	}
}

// The output of kubectl get -o yaml and -o json is a list.
func TestReadFile_KubectlLists(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n",
		"{\n \"apiVersion\": \"v1\", \"kind\": \"NodeList\", \"items\": [{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"a\"}}]}\n",
	} {
		s, err := capture.ReadFile(write(t, "list", text))
		if err != nil || len(s.Nodes) != 1 {
			t.Errorf("%d nodes, %v", len(s.Nodes), err)
		}
	}
}

// A snapshot of ours is detected by its first bytes, whatever its name, and lists itself the kinds that its server did
// not have.
func TestReadFile_SnapshotUnderAnyName(t *testing.T) {
	text := mustTake(t, fixture(t), capture.Options{})
	s, err := capture.ReadFile(write(t, "cluster.yaml", text))
	if err != nil || s.Manifest.Format != capture.Format || len(s.Nodes) != 2 ||
		slices.Contains(s.Missing(), "nodes") || !slices.Contains(s.Missing(), "devicetaintrules") {
		t.Errorf("format %s, missing %v, %v", s.Manifest.Format, s.Missing(), err)
	}
}

func TestReadFile_RefusesBadObjects(t *testing.T) {
	const node = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"
	const patch = "apiVersion: action.kwok.x-k8s.io/v1alpha1\nkind: ResourcePatch\nresource: {version: v1, resource: nodes}\n"
	for _, tc := range []struct{ name, text, want string }{
		{"empty", "", "f.yaml: the file is empty"},
		{"no object", node + "---\nhello: world\n", "f.yaml:5: this is no Kubernetes object"},
		{"a sentence", "hello world\n", "f.yaml:1: the document is not an object"},
		{"broken", node + "---\na: [\n", "f.yaml:"},
		{"twice", node + "---\n" + node, "f.yaml:5: Node a is there already, in line 1; leave one of them"},
		{"no name", "apiVersion: v1\nkind: Node\n", "the Node has no name"},
		{"no such object", "apiVersion: v1\nkind: Node\nmetadata: {name: a}\nspec: {unschedulable: maybe}\n", "f.yaml:4: spec.unschedulable is of the wrong type"},
		{"strange version", "apiVersion: a/b/c\nkind: Node\n", `f.yaml:1: the apiVersion is "a/b/c"`},
		{"no method", patch + "target: {name: a}\n", `the method "" of a ResourcePatch of resource "nodes" is not known`},
		{"no target", patch + "method: delete\n", "the ResourcePatch names no node"},
		{"before", patch + "method: delete\ntarget: {name: a}\ndurationNanosecond: -1\n", "f.yaml:6: the durationNanosecond is -1"},
		{"no node", patch + "method: create\ntarget: {name: a}\n", "the node that is created is not there; give it template"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := capture.ReadFile(write(t, "f.yaml", tc.text))
			if !badinput.Is(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
	packed := compressed(t, recording)
	if _, err := capture.ReadFile(
		write(t, "f.yaml.gz", packed[:len(packed)/2]),
	); !badinput.Is(err) ||
		!strings.Contains(err.Error(), "cut off") {
		t.Errorf("half a file: %v", err)
	}
}

// Pods name their gang as the PodGroups of their namespace state it, wherever these stand in the file. A row counts in
// its own namespace only, and an unreadable one counts nowhere.
func TestReadFile_GangMarksFromPodGroups(t *testing.T) {
	const pods = `apiVersion: v1
kind: Pod
metadata: {namespace: a, name: p, labels: {example.com/crew: night}}
spec: {schedulerName: other-name}
---
apiVersion: v1
kind: Pod
metadata: {namespace: b, name: p, labels: {example.com/crew: night}}
spec: {schedulerName: lockstep-scheduler}
`
	const groups = `---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {namespace: a, name: crew.night, annotations: {lockstep.dev/dialect: crew, lockstep.dev/schedulers: "lockstep-scheduler,other-name",
  lockstep.dev/dialect-row: '{"name":"crew","member":{"labels":["example.com/crew"]},"minimum":"1"}'}}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {namespace: b, name: x, annotations: {lockstep.dev/dialect: crew, lockstep.dev/dialect-row: '{"name":"crew","minimum":"1 +"}'}}
`
	snapshot, err := capture.ReadObjects([]byte(pods+groups), "dump.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"crew.night", ""} {
		pod := snapshot.Pods[i]
		if group := gangapi.GroupOf(
			pod.ObjectMeta,
			pod.Spec,
		); group != want ||
			pod.Spec.SchedulerName != "lockstep-scheduler" {
			t.Errorf("pod %s/%s is in gang %q, of %s", pod.Namespace, pod.Name, group, pod.Spec.SchedulerName)
		}
	}
}
