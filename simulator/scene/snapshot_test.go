package scene_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/simulator/badinput"
	"github.com/lockstep-project/lockstep/simulator/capture"
	"github.com/lockstep-project/lockstep/simulator/scene"
	"github.com/lockstep-project/lockstep/simulator/trace"
	"github.com/lockstep-project/lockstep/topology"
)

// now is when all snapshots of these tests are.
const now = "2026-11-22T12:00:00Z"

// node is a node with 8 GPUs in a rack; more is what else stands below metadata, spec or status.
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
	return pod(fmt.Sprintf("%s-%d", gang, rank), gpus, fmt.Sprintf("  schedulingGroup: {podGroupName: %s}\n%s", gang, more), status)
}

// gang is a PodGroup of two; annotations are its, without the prefix of ours.
func gang(name string, priority int, annotations ...string) string {
	text := fmt.Sprintf(`---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata:
  name: %s
  namespace: ml
  creationTimestamp: "2026-11-22T11:00:00Z"
  annotations: {note: none`, name)
	for _, a := range annotations {
		key, value, _ := strings.Cut(a, "=")
		text += fmt.Sprintf(", lockstep.dev/%s: %q", key, value)
	}
	return text + fmt.Sprintf("}\nspec: {priority: %d, schedulingPolicy: {gang: {minCount: 2}}}\n", priority)
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

func from(t *testing.T, text string, tr *trace.Trace, o scene.Options) *scene.Scene {
	t.Helper()
	s, err := scene.FromSnapshot(taken(t, text), tr, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// noted reports whether a note has the text.
func noted(s *scene.Scene, text string) bool {
	return strings.Contains(strings.Join(s.Notes, "\n"), text)
}

// free are the GPUs that are free on each node, by its name's order.
func free(s *scene.Scene) []int64 {
	var out []int64
	for _, name := range []string{"a1", "a2", "b1", "b2"} {
		at, _ := s.Ledger.Tree.Index(name)
		out = append(out, s.Ledger.Free[at][s.Accelerator])
	}
	return out
}

// What runs holds its nodes: gangs as one, single pods for themselves, and each ends when somebody knows that it does.
func TestWhatRuns(t *testing.T) {
	const started = "status: {phase: Running, startTime: \"2026-11-22T11:30:00Z\"}\n"
	s := from(t, racks()+
		gang("told", 0, "expected-end=2026-11-22T13:00:00Z")+
		member("told", 1, 8, on("a2"), "")+member("told", 0, 8, on("a1"), "")+
		gang("deadline", 0)+member("deadline", 0, 4, on("b1")+"  activeDeadlineSeconds: 3600\n", started)+
		gang("forever", 0)+member("forever", 0, 1, on("b1"), started)+
		gang("overdue", 0, "expected-end=2026-11-22T11:59:00Z")+member("overdue", 0, 1, on("b1"), started)+
		pod("service", 1, on("b2"), started)+
		pod("single", 2, on("b2")+"  restartPolicy: Never\n  activeDeadlineSeconds: 5400\n", started)+
		pod("over", 2, on("b2"), "status: {phase: Failed}\n")+
		pod("lost", 2, on("gone"), started)+
		strings.Replace(pod("leaves", 1, on("b2"), started), "uid:", `deletionTimestamp: "2026-11-22T12:00:30Z", uid:`, 1),
		nil, scene.Options{})
	if s.Begin.Format(time.RFC3339) != now || s.Fleet != "snapshot "+now {
		t.Errorf("it begins at %s: %s", s.Begin, s.Fleet)
	}
	type ran struct {
		name           string
		ends, expected time.Duration
		gpus           int64
		pods           int
	}
	var got []ran
	for _, r := range s.Running {
		got = append(got, ran{r.Name, r.Ends, r.Expected, r.Accelerators, len(r.Pods)})
		if (r.Group == nil) != strings.HasSuffix(r.Name, "/") || len(r.Holds) != len(r.Pods) {
			t.Errorf("%+v", r)
		}
	}
	want := []ran{
		{"ml/deadline", 30 * time.Minute, scene.Forever, 4, 1}, {"ml/forever", scene.Forever, scene.Forever, 1, 1},
		{"ml/leaves/", 30 * time.Second, 30 * time.Second, 1, 1}, {"ml/overdue", 0, 0, 1, 1},
		{"ml/service/", scene.Forever, scene.Forever, 1, 1}, {"ml/single/", time.Hour, time.Hour, 2, 1},
		{"ml/told", time.Hour, time.Hour, 16, 2},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(ran{})); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if want := []int64{0, 0, 2, 4}; !cmp.Equal(free(s), want) {
		t.Errorf("free: %v, want %v", free(s), want)
	}
	for _, want := range []string{
		"of 1 gangs that run nobody knows when they end, so they run on: ml/forever", "1 pods are on nodes that are not there",
		"1 that run should have ended before, and end at once: ml/overdue",
	} {
		if !noted(s, want) {
			t.Errorf("%q is not in %q", want, s.Notes)
		}
	}
}

// What waits comes at the beginning and has waited already; those that are played are those that the scheduler would look at.
func TestWhatWaits(t *testing.T) {
	both := func(name string, more string) string {
		return member(name, 1, 8, more, "") + member(name, 0, 4, more, "")
	}
	s := from(t, racks()+
		gang("known", 5, "queued-at=2026-11-22T11:40:00Z", "expected-end=2026-11-22T14:00:00Z", "required-topology=tier-0",
			"segment-size=1", "segment-topology=node")+both("known", "")+
		gang("deadline", 0)+both("deadline", "  activeDeadlineSeconds: 7200\n  nodeSelector: {hall: b}\n")+
		gang("unsaid", 0)+both("unsaid", "")+
		gang("hall", 0, "required-topology=hall")+both("hall", "")+
		gang("nowhere", 0, "required-topology=planet")+both("nowhere", "")+
		gang("wrong", 0, "segment-size=many")+both("wrong", "")+
		gang("gated", 0)+both("gated", "  schedulingGates: [{name: kueue}]\n")+
		gang("few", 0)+member("few", 0, 1, "", "")+
		gang("half", 0)+member("half", 0, 1, on("a1"), "")+member("half", 1, 1, "", "")+
		member("orphan", 0, 1, "", "")+
		pod("single", 2, "", "")+
		strings.Replace(pod("daemon", 0, "", ""), "uid:", "ownerReferences: [{kind: DaemonSet, name: d, controller: true, apiVersion: apps/v1, uid: u}], uid:", 1),
		nil, scene.Options{Unsaid: 10 * time.Minute})
	byID := map[string]scene.Job{}
	order := ""
	for _, j := range s.Jobs {
		byID[j.ID] = j
		order += " " + j.ID
		if j.Submit != 0 || j.Tenant != "ml" || !j.Preemptible || len(j.Pods) != len(j.Gang.Members) || (j.Group == nil) != (j.ID == "ml.single") {
			t.Errorf("%+v", j)
		}
	}
	if order != " ml.deadline ml.hall ml.single ml.unsaid ml.known" {
		t.Errorf("the jobs are%s: of one instant the longest waiting are first", order)
	}
	known := byID["ml.known"]
	if known.Waited != 20*time.Minute || known.Duration != 2*time.Hour || known.Estimate != 2*time.Hour || known.Priority != 5 ||
		known.Needed != 2 || known.Accelerators != 12 || known.Gang.Required != "tier-0" ||
		known.Gang.Segment != (topology.Segment{Size: 1, Level: "node"}) || known.Gang.Members[0].Name != "ml.known-0" {
		t.Errorf("%+v", known)
	}
	if first, second := known.Pods[0].Name, known.Gang.Shapes[known.Gang.Members[0].Shape].Demand; first != "known-0" ||
		second[s.Accelerator] != 4 || second[1] != 2000 {
		t.Errorf("rank 0 is %s and takes %v", first, second)
	}
	deadline := byID["ml.deadline"]
	var barred []string
	for i, rule := range deadline.Gang.Shapes[0].Barred {
		if rule != "" {
			barred = append(barred, s.Nodes[i].Name)
		}
	}
	if deadline.Duration != 2*time.Hour || deadline.Waited != time.Hour || !cmp.Equal(barred, []string{"a1", "a2"}) {
		t.Errorf("%+v; barred from %v", deadline, barred)
	}
	if j := byID["ml.unsaid"]; j.Duration != 10*time.Minute || j.Estimate != 0 {
		t.Errorf("%+v", j)
	}
	if _, ok := s.Ledger.Tree.Level("hall"); !ok || s.Ledger.Tree.Levels()[0].Name != "hall" {
		t.Errorf("a label that a gang requires is the outermost level: %v", s.Ledger.Tree.Levels())
	}
	for _, want := range []string{
		"of 3 that wait nobody says how long they run: 10m0s each is assumed",
		"3 that wait are gated or lack members, and are not played: ml/orphan-0, ml/few, ml/gated",
		"1 gangs that run lack members, and run without them: ml/half",
		"2 that wait cannot start, and are not played: ml/nowhere (it asks for a level: no node has planet), ml/wrong (reading its wishes:",
		"1 pods of DaemonSets wait for their nodes",
	} {
		if !noted(s, want) {
			t.Errorf("%q is not in\n%s", want, strings.Join(s.Notes, "\n"))
		}
	}
}

// Nodes that only some may use are open to these and barred to all others, those of a trace too; nodes that nobody may use are closed.
func TestTaintsThatSomebodyTolerates(t *testing.T) {
	tainted := func(key string) string { return "spec: {taints: [{key: " + key + ", effect: NoSchedule}]}\n" }
	tr := jobs(job("new", 1, 1))
	s := from(t, node("a1", "a-rack", tainted("team"))+node("a2", "a-rack", tainted("broken"))+node("b1", "b-rack", tainted("nvidia.com/gpu"))+
		node("b2", "b-rack", "spec: {unschedulable: true}\n")+
		pod("ours", 1, "  tolerations: [{key: team, operator: Exists}, {key: nvidia.com/gpu, operator: Exists}]\n", ""), &tr, scene.Options{})
	at := map[string]int{}
	for i, n := range s.Nodes {
		at[n.Name] = i
	}
	if s.Closed[at["a1"]] || !s.Closed[at["a2"]] || s.Closed[at["b1"]] || !s.Closed[at["b2"]] {
		t.Errorf("closed: %v of %v", s.Closed, at)
	}
	ours, others := s.Jobs[0].Gang.Shapes[0].Barred, s.Jobs[1].Gang.Shapes[0].Barred
	if s.Jobs[0].ID != "ml.ours" || ours[at["a1"]] != "" || others[at["a1"]] != "untolerated taint team" || others[at["b1"]] != "" {
		t.Errorf("%s is barred by %q, %s by %q", s.Jobs[0].ID, ours, s.Jobs[1].ID, others)
	}
}

// A trace comes on top: as fast as its load says, with its own name and source, and after who waits.
func TestATraceComesOnTop(t *testing.T) {
	tr := jobs(job("new", 1, 8), job("later", 1, 8))
	tr.Jobs[1].Submit = time.Hour
	s := from(t, racks()+pod("single", 2, "  activeDeadlineSeconds: 60\n", ""), &tr, scene.Options{Load: 2, Estimates: 1})
	order := ""
	for _, j := range s.Jobs {
		order += fmt.Sprint(" ", j.ID, "@", j.Submit, "/", j.Estimate)
	}
	if order != " ml.single@0s/1m0s new@0s/1h0m0s later@30m0s/1h0m0s" || s.Trace != "t" || s.Source != "us" {
		t.Errorf("%s; %s of %s", order, s.Trace, s.Source)
	}
	tr.Jobs[0].ID = "ml.single"
	_, err := scene.FromSnapshot(taken(t, racks()+pod("single", 2, "", "")), &tr, scene.Options{})
	if !badinput.Is(err) || !strings.Contains(err.Error(), "job ml.single: a job of that name waits in the snapshot already") {
		t.Errorf("error %v", err)
	}
}

// A scene counts accelerators, so what claims have or want of them is asked for by number, once for all who share it.
func TestClaimsAreCounted(t *testing.T) {
	const published = `---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu.nvidia.com}
spec: {extendedResourceName: nvidia.com/gpu}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s1}
spec:
  driver: gpu.nvidia.com
  nodeName: a1
  pool: {name: a1, resourceSliceCount: 1}
  devices:
  - {name: gpu-0, attributes: {type: {string: gpu}}}
  - {name: gpu-1, attributes: {type: {string: gpu}}}
  - {name: gpu-2, attributes: {type: {string: gpu}}}
  - {name: gpu-3-mig, attributes: {type: {string: mig}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: two, namespace: ml}
status:
  allocation: {devices: {results: [
    {request: r, driver: gpu.nvidia.com, pool: a1, device: gpu-0}, {request: r, driver: gpu.nvidia.com, pool: a1, device: gpu-1}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: part, namespace: ml}
status: {allocation: {devices: {results: [{request: r, driver: gpu.nvidia.com, pool: a1, device: gpu-3-mig}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: three, namespace: ml}
spec: {spec: {devices: {requests: [{name: g, exactly: {deviceClassName: gpu.nvidia.com, count: 3}}, {name: nic, exactly: {deviceClassName: nic, count: 9}}]}}}
`
	claims := func(claim string) string { return "  resourceClaims: [{name: c, " + claim + "}]\n" }
	bare := strings.Replace(node("a1", "a-rack", ""), `, nvidia.com/gpu: "8"`, "", 1)
	s := from(t, bare+node("a2", "a-rack", "")+published+
		pod("first", 0, on("a1")+claims("resourceClaimName: two"), "")+pod("second", 0, on("a1")+claims("resourceClaimName: two"), "")+
		pod("mig", 0, on("a1")+claims("resourceClaimName: part"), "")+
		pod("waits", 1, claims("resourceClaimTemplateName: three"), "")+
		pod("strange", 0, claims("resourceClaimTemplateName: none"), ""), nil, scene.Options{})
	at, _ := s.Ledger.Tree.Index("a1")
	if s.Ledger.Total[at][s.Accelerator] != 3 || s.Ledger.Free[at][s.Accelerator] != 1 || !s.Devices[at] {
		t.Errorf("%v of %v are free", s.Ledger.Free[at], s.Ledger.Total[at])
	}
	for _, j := range s.Jobs {
		asked := j.Pods[0].Spec.Containers[0].Resources.Requests[corev1.ResourceName("nvidia.com/gpu")]
		want := map[string]int64{"ml.waits": 4}[j.ID]
		if j.Accelerators != want || asked.Value() != want || len(j.Pods[0].Spec.ResourceClaims) > 0 {
			t.Errorf("%s asks for %s, %d", j.ID, &asked, j.Accelerators)
		}
	}
	if !noted(s, "what 2 claims have is not counted: claim ml/part, which has a part of an accelerator, "+
		"claim c of ml/strange, whose template is not in the snapshot") {
		t.Errorf("notes %q", s.Notes)
	}
}

// Recorded changes are events; a node that comes later is not there before.
func TestNodesComeAndGo(t *testing.T) {
	patch := func(name, method, more string, seconds int) string {
		return fmt.Sprintf("---\napiVersion: action.kwok.x-k8s.io/v1alpha1\nkind: ResourcePatch\nresource: {version: v1, resource: nodes}\n"+
			"target: {name: %s}\ndurationNanosecond: %d\nmethod: %s\n%s", name, seconds*1e9, method, more)
	}
	object := "template: {apiVersion: v1, kind: Node, metadata: {labels: {fabric.topograph.run/tier-0: a-rack}}, " +
		"status: {allocatable: {nvidia.com/gpu: 8}}}\n"
	s := from(t, racks()+pod("p", 1, "", "")+patch("a3", "create", object, 60)+patch("a1", "delete", "", 30)+patch("a1", "create", object, 90)+
		patch("zz", "delete", "", 95), nil, scene.Options{})
	var got []string
	for _, e := range s.Events {
		got = append(got, fmt.Sprintf("%s %s %s", e.At, e.Kind, s.Nodes[e.Nodes[0]].Name))
	}
	if want := []string{"0s fail a3", "30s fail a1", "1m0s return a3", "1m30s return a1"}; !cmp.Equal(got, want) {
		t.Errorf("events %q, want %q", got, want)
	}
}

// What a scene cannot be made without is refused by name; of the rest something is said.
func TestIncompleteSnapshots(t *testing.T) {
	for _, tc := range []struct{ text, want string }{
		{pod("p", 1, "", ""), "the snapshot: it says nothing of nodes; take it again with all kinds"},
		{racks(), "the snapshot: it says nothing of pods"},
		{
			racks() + member("g", 0, 1, "", ""),
			"the snapshot: it says nothing of podgroups; pod ml/g-0 is in one; take it again with them",
		},
		{strings.ReplaceAll(racks(), "nvidia.com/gpu", "cores") + pod("p", 0, "", ""), "the fleet has no accelerators"},
	} {
		if _, err := scene.FromSnapshot(taken(t, tc.text), nil, scene.Options{}); !badinput.Is(err) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("got  %v\nwant %s", err, tc.want)
		}
	}
	s := from(t, racks()+pod("p", 1, "", ""), nil, scene.Options{})
	if !noted(s, "the snapshot has no namespaces, podgroups, poddisruptionbudgets, deviceclasses, resourceslices,") {
		t.Errorf("notes %q", s.Notes)
	}
	if _, err := scene.FromSnapshot(taken(t, racks()+pod("p", 1, "", "")), nil, scene.Options{Unsaid: -1}); !badinput.Is(err) {
		t.Errorf("error %v", err)
	}
}
