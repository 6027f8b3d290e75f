package importer_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario/importer"
	"github.com/lockstep-project/lockstep/topology"
)

// Running units hold their nodes: gangs as one, single pods for themselves, and each ends at its known end.
func TestFromSnapshot_RunningUnitsHoldNodes(t *testing.T) {
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
		strings.Replace(
			pod("leaves", 1, on("b2"), started),
			"uid:",
			`deletionTimestamp: "2026-11-22T12:00:30Z", uid:`,
			1,
		),
		nil, scenario.Options{})
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
	for i, r := range s.Running {
		of := objects(t, s).Running[i]
		got = append(got, ran{r.Name, r.Ends, r.Expected, r.Accelerators, len(of.Pods)})
		if (of.Group == nil) != strings.HasSuffix(r.Name, "/") || (of.Group != nil) != r.IsGang ||
			len(r.Holds) != len(of.Pods) {
			t.Errorf("%+v", r)
		}
	}
	want := []ran{
		{"ml/deadline", 30 * time.Minute, scenario.Forever, 4, 1},
		{"ml/forever", scenario.Forever, scenario.Forever, 1, 1},
		{"ml/leaves/", 30 * time.Second, 30 * time.Second, 1, 1},
		{"ml/overdue", 0, 0, 1, 1},
		{"ml/service/", scenario.Forever, scenario.Forever, 1, 1},
		{"ml/single/", time.Hour, time.Hour, 2, 1},
		{"ml/told", time.Hour, time.Hour, 16, 2},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(ran{})); diff != "" {
		t.Errorf("want -, got +:\n%s", diff)
	}
	if want := []int64{0, 0, 2, 4}; !cmp.Equal(free(s), want) {
		t.Errorf("free: %v, want %v", free(s), want)
	}
	for _, want := range []string{
		"the ends of 1 gangs that run are unknown, so they run on: ml/forever", "1 pods are on nodes that are not there",
		"1 that run should have ended before, and end at once: ml/overdue",
	} {
		if !noted(s, want) {
			t.Errorf("%q is not in %q", want, s.Notes)
		}
	}
}

// Waiting units arrive at the beginning and have waited already; those that are played are those that the scheduler
// would consider.
func TestFromSnapshot_WaitingUnitsHaveWaited(t *testing.T) {
	both := func(name, more string) string {
		return member(name, 1, 8, more, "") + member(name, 0, 4, more, "")
	}
	s := from(t, racks()+
		gang(
			"known",
			5,
			"queued-at=2026-11-22T11:40:00Z",
			"expected-end=2026-11-22T14:00:00Z",
			"required-topology=tier-0",
			"segment-size=1",
			"segment-topology=node",
		)+both("known", "")+
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
		strings.Replace(
			pod("daemon", 0, "", ""),
			"uid:",
			"ownerReferences: [{kind: DaemonSet, name: d, controller: true, apiVersion: apps/v1, uid: u}], uid:",
			1,
		),
		nil, scenario.Options{DefaultRunTime: 10 * time.Minute})
	byID := map[string]scenario.Job{}
	var order []string
	for _, j := range s.Jobs {
		byID[j.ID] = j
		order = append(order, j.ID)
		of := objects(t, s).Jobs[j.ID]
		if j.Submit != 0 || j.Tenant != "ml" || !j.Preemptible || len(of.Pods) != len(j.Gang.Members) ||
			(of.Group == nil) != (j.ID == "ml.single") {
			t.Errorf("%+v", j)
		}
	}
	if strings.Join(order, " ") != "ml.deadline ml.hall ml.single ml.unsaid ml.known" {
		t.Errorf("the jobs are %s: of one instant the longest waiting are first", order)
	}
	known := byID["ml.known"]
	if known.Waited != 20*time.Minute || known.Duration != 2*time.Hour || known.Estimate != 2*time.Hour ||
		known.Priority != 5 ||
		known.Needed != 2 ||
		known.Accelerators != 12 ||
		known.Gang.Required != "tier-0" ||
		known.Gang.Segment != (topology.Segment{Size: 1, Level: "node"}) ||
		known.Gang.Members[0].Name != "ml.known-0" {
		t.Errorf("%+v", known)
	}
	if first, second := objects(t, s).Jobs[known.ID].Pods[0].Name, known.Gang.Shapes[known.Gang.Members[0].Shape].Demand; first != "known-0" ||
		second[s.Accelerator] != 4 ||
		second[1] != 2000 {
		t.Errorf("rank 0 is %s and takes %v", first, second)
	}
	deadline := byID["ml.deadline"]
	var barred []string
	for i, rule := range deadline.Gang.Shapes[0].Barred {
		if rule != "" {
			barred = append(barred, s.Ledger.Tree.Node(i))
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
		"the run times of 3 that wait are unknown: 10m0s each is assumed",
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

// Nodes that only some may use are open to these and barred to all others, those of a trace too; nodes that no workload
// may use are closed.
func TestFromSnapshot_ToleratedTaints(t *testing.T) {
	tainted := func(key string) string { return "spec: {taints: [{key: " + key + ", effect: NoSchedule}]}\n" }
	tr := jobs(job("new", 1, 1))
	s := from(
		t,
		node(
			"a1",
			"a-rack",
			tainted("team"),
		)+node(
			"a2",
			"a-rack",
			tainted("broken"),
		)+node(
			"b1",
			"b-rack",
			tainted("nvidia.com/gpu"),
		)+
			node(
				"b2",
				"b-rack",
				"spec: {unschedulable: true}\n",
			)+
			pod(
				"ours",
				1,
				"  tolerations: [{key: team, operator: Exists}, {key: nvidia.com/gpu, operator: Exists}]\n",
				"",
			),
		&tr,
		scenario.Options{},
	)
	at := map[string]int{}
	for i, n := range objects(t, s).Nodes {
		at[n.Name] = i
	}
	if s.Closed[at["a1"]] || !s.Closed[at["a2"]] || s.Closed[at["b1"]] || !s.Closed[at["b2"]] {
		t.Errorf("closed: %v of %v", s.Closed, at)
	}
	ours, others := s.Jobs[0].Gang.Shapes[0].Barred, s.Jobs[1].Gang.Shapes[0].Barred
	if s.Jobs[0].ID != "ml.ours" || ours[at["a1"]] != "" || others[at["a1"]] != "untolerated taint team" ||
		others[at["b1"]] != "" {
		t.Errorf("%s is barred by %q, %s by %q", s.Jobs[0].ID, ours, s.Jobs[1].ID, others)
	}
}

// A trace is added: as fast as its load says, with its own name and source, and behind waiting units.
func TestFromSnapshot_AddsATrace(t *testing.T) {
	tr := jobs(job("new", 1, 8), job("later", 1, 8))
	tr.Jobs[1].Submit = time.Hour
	s := from(
		t,
		racks()+pod("single", 2, "  activeDeadlineSeconds: 60\n", ""),
		&tr,
		scenario.Options{Load: 2, Estimates: 1},
	)
	var jobs []string
	for _, j := range s.Jobs {
		jobs = append(jobs, fmt.Sprint(j.ID, "@", j.Submit, "/", j.Estimate))
	}
	if strings.Join(jobs, " ") != "ml.single@0s/1m0s new@0s/1h0m0s later@30m0s/1h0m0s" || s.Trace != "t" ||
		s.Source != "us" {
		t.Errorf("%s; %s of %s", jobs, s.Trace, s.Source)
	}
	tr.Jobs[0].ID = "ml.single"
	_, err := importer.FromSnapshot(taken(t, racks()+pod("single", 2, "", "")), &tr, scenario.Options{})
	if !badinput.Is(err) ||
		!strings.Contains(err.Error(), "job ml.single: a job of that name waits in the snapshot already") {
		t.Errorf("error %v", err)
	}
}
