package cli_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/scheduler/whatif/whatiftest"
	"github.com/lockstep-project/lockstep/simulator/explain"
)

// jobs are TrainJobs in all states that have no gang to speak of.
const idle = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: queued, namespace: default, labels: {kueue.x-k8s.io/queue-name: lab}}
spec: {suspend: true, runtimeRef: {name: torch-distributed}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: over, namespace: default}
spec: {runtimeRef: {name: torch-distributed}}
status: {conditions: [{type: Complete, status: "True", reason: AllJobsCompleted, message: all jobs completed}]}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: orphan, namespace: default}
spec: {runtimeRef: {name: gone}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: fresh, namespace: default}
spec: {runtimeRef: {name: torch-distributed}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: loose, namespace: default, annotations: {lockstep.dev/gang: "off"}}
spec: {runtimeRef: {name: torch-distributed}}
`

func TestExplain_JobsWithoutAGang(t *testing.T) {
	l := newLab(t, draw(t, "r1: ...."), idle)
	for name, want := range map[string]struct {
		code int
		says string
	}{
		"queued": {1, "default/queued is suspended: it waits for Kueue's admission in queue lab"},
		"over":   {0, "default/over is over: Complete (all jobs completed)"},
		"orphan": {1, "default/orphan cannot be rendered: ClusterTrainingRuntime gone: "},
		"fresh":  {1, "default/fresh has no PodGroup yet"},
		"loose":  {1, "default/loose is no gang, so its pods start one by one: 0 of 0 have nodes"},
	} {
		code, out, stderr := l.explain(t, "trainjob", name)
		if code != want.code || !strings.HasPrefix(out, want.says) || stderr != "" {
			t.Errorf("%s: exit %d: %s%s", name, code, out, stderr)
		}
	}
}

const pretrain = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: pretrain, annotations: {lockstep.dev/required-topology: rack}}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 3, command: [torchrun, train.py], resourcesPerNode: {limits: {nvidia.com/gpu: 4}}}
`

// Two nodes of each rack are free, and three of one are wanted. It would be first in the queue: x follows it when both
// wait.
func TestExplain_BeforeSubmitting(t *testing.T) {
	objects := draw(t, "r1: aaaa .... ....\nr2: bbbb .... ....")
	l := newLab(t, objects, "")
	file := l.write(t, "pretrain.yaml", pretrain)
	l.says(t, `
default/pretrain waits for room; a place is reserved for it, estimated to be free 13:00Z (in 1h)
  needs 3 members in one rack (example.com/rack); nearest b1/r1: 2 of 3, 1 node full there; block b1 holds all; 2 nodes without room
  reserved for default/pretrain: 3 nodes in rack=b1/r1, estimated to be free 13:00Z (in 1h); these have to end:
    default/a (4 accelerators): its end is not known; estimated 13:00Z (in 1h)
  it preempts nothing: no workload that may be evicted has a lower priority
  number 1 in the queue: priority 0, for 0s; 3 members, 12 accelerators
  expected start: estimated 13:00Z (in 1h); no end is known of default/a: an activeDeadlineSeconds, or a trainer that reports its status, would tell
`, 1, "--with-job", file)
	l.says(t, `
default/pretrain fits: it starts in the scheduler's next cycle, on 3 nodes in block=b1
    b1/r1: ranks 0-1 on r1-2 r1-3
    b1/r2: rank 2 on r2-2
  number 1 in the queue: priority 0, for 0s; 3 members, 12 accelerators
  expected start: now
`, 0, "trainjob", "pretrain", "--with-job", l.write(t, "anywhere.yaml", strings.ReplaceAll(pretrain, "-topology: rack", "-topology: block")))
}

// claiming is a job whose nodes claim four pairs each, by a template that is in the cluster or in its file.
const claiming = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: pretrain}
spec:
  runtimeRef: {name: torch-distributed}
  trainer: {numNodes: 2, command: [torchrun, train.py], resourceClaimsPerNode: [{name: pairs, resourceClaimTemplateName: T}]}
`

const ownTemplate = `---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: own}
spec: {spec: {devices: {requests: [{name: all, exactly: {deviceClassName: gpu, allocationMode: ExactCount, count: 3}}]}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: classless}
spec: {spec: {devices: {requests: [{name: all, exactly: {deviceClassName: gpus, allocationMode: ExactCount, count: 1}}]}}}
`

const taintRule = `apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {name: broken}
spec: {taint: {key: example.com/broken, effect: NoSchedule}}
`

// Nodes publish devices, and a job that is not there yet claims them: its claims are made of their template, wherever
// that is.
func TestExplain_JobWithClaimsBeforeSubmitting(t *testing.T) {
	objects := draw(t, "r1: aaaa .... ....")
	for _, script := range []*datadriven.TestData{
		{Cmd: "publishes", CmdArgs: []datadriven.CmdArg{{Key: "r1"}}},
		{Cmd: "runs", CmdArgs: []datadriven.CmdArg{{Key: "a"}, {Key: "has", Vals: []string{"4"}}}},
	} {
		if _, err := whatiftest.Draw(&objects, script); err != nil {
			t.Fatal(err)
		}
	}
	l := newLab(t, objects, taintRule)
	for template, want := range map[string]struct {
		code int
		says []string
	}{
		"pairs-4": {0, []string{
			"default/pretrain fits: it starts in the scheduler's next cycle, on 2 nodes in rack=b1/r1", "r1-2 r1-3",
			"2 members, 8 accelerators", "note: 1 DeviceTaintRules are not looked at",
		}},
		"own":       {0, []string{"on 2 nodes in rack=b1/r1", "2 members, 6 accelerators"}},
		"classless": {1, []string{"claims: ", "gpus"}},
		"gone":      {1, []string{"claim template gone does not exist"}},
	} {
		file := l.write(t, template+".yaml", strings.ReplaceAll(claiming, "T}]}", template+"}]}")+ownTemplate)
		code, out, stderr := l.explain(t, "--with-job", file)
		if code != want.code || stderr != "" {
			t.Errorf("%s: exit %d: %s%s", template, code, out, stderr)
		}
		rest := out
		for _, part := range want.says {
			var found bool
			if _, rest, found = strings.Cut(rest, part); !found {
				t.Errorf("%s: no %q in\n%s", template, part, out)
			}
		}
	}
}

// The launcher is announced, and its place is planned beside the workers.
func TestExplain_JobWithALauncher(t *testing.T) {
	l := newLab(t, draw(t, "r1: aa.. ....\nr2: .... ...."), "")
	file := filepath.Join("..", "..", "manifests", "samples", "deepspeed.yaml")
	code, out, stderr := l.explain(t, "--with-job", file, "-o", "json")
	var answer struct {
		Gangs []struct {
			State           string
			Members, Needed int
			Where           struct {
				Within string
				Ranks  []struct {
					Pod, Node string
					Late      bool
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, stderr)
	}
	g := answer.Gangs[0]
	late := 0
	for _, r := range g.Where.Ranks {
		if r.Late {
			late++
		}
	}
	if g.State != "fits" || g.Where.Within != "rack=b1/r2" || g.Members != len(g.Where.Ranks) ||
		g.Needed+late != g.Members {
		t.Errorf("%+v", g)
	}
}

// The answer for a file is the cluster's when it was taken; the instant is that of the file.
func TestExplain_ReadsASnapshot(t *testing.T) {
	objects := draw(t, "r1: aaaa ....")
	whatiftest.Add(&objects, whatiftest.Wait{Name: "x", Workers: 2, GPUs: 4, Queued: 10})
	l := newLab(t, objects, "")
	file := filepath.Join(l.dir, "c.snapshot.json.gz")
	if code, _, stderr := executeAt(t, whatiftest.Now(), "snapshot", "-o", file); code != 0 {
		t.Fatal(stderr)
	}
	for _, args := range [][]string{{"podgroup", "x"}, {"podgroup/x"}, {"queue"}, {"drain", "r1-1"}} {
		liveCode, live, _ := l.explain(t, args...)
		code, out, stderr := l.explain(t, append(args, "--snapshot", file)...)
		if diff := cmp.Diff(live, out); diff != "" || code != liveCode || stderr != "" {
			t.Errorf("%v: exit %d, live %d; %s (-live +file):\n%s", args, code, liveCode, stderr, diff)
		}
	}
	before := l.server.Calls["nodes"]
	if l.explain(t, "queue", "--snapshot", file); l.server.Calls["nodes"] != before {
		t.Error("the cluster was asked although a file is named")
	}
}

func TestExplain_RefusesInOneLine(t *testing.T) {
	objects := draw(t, "r1: aaaa ....\nr2: bbbb ....")
	l := newLab(t, objects, idle)
	wrong := l.write(t, "wrong.yaml", "# one\n"+strings.Replace(pretrain, "numNodes: 3", "numNodes: 0", 1))
	orphan := l.write(t, "orphan.yaml", strings.Replace(pretrain, "torch-distributed", "torch-distribute", 1))
	twin := l.write(t, "twin.yaml", strings.Replace(pretrain, "name: pretrain", "name: over", 1))
	hard := l.write(t, "hard.yaml", strings.Replace(pretrain, "topology: rack}", "topologie: rack}", 1))
	plain := l.write(t, "plain.yaml", "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
	torn := l.write(t, "torn.json", `{"format":"lockstep.dev/snapshot/v1","kinds":[]}`)
	other := l.write(t, "other.yaml", "profiles: [{schedulerName: default-scheduler}]")
	level := l.write(t, "level.yaml", strings.Replace(levels, "key: example.com/block", "name: block", 1))
	for _, test := range []struct {
		name string
		args []string
		want []string // in this order, in the one line
	}{
		{"nothing", nil, []string{"nothing is asked", "--with-job"}},
		{"another kind", []string{"pod", "x"}, []string{`"pod"`, "trainjob, podgroup, drain, queue or reservations"}},
		{"two names", []string{"trainjob", "x", "y"}, []string{"one name", "trainjob NAME"}},
		{"a drain of nothing", []string{"drain"}, []string{"no node", "NODE"}},
		{"a form", []string{"queue", "-o", "yaml"}, []string{"-o yaml", "text or json"}},
		{"no such gang", []string{"podgroup", "c"}, []string{"podgroup c", "default/c", "default/a, default/b"}},
		{"no such job", []string{"trainjob", "queud"}, []string{"trainjob queud", "TrainJob default/queud", "default/queued"}},
		{"another namespace", []string{"podgroup", "a", "-n", "lab"}, []string{"lab/a", "default/a"}},
		{"no such node", []string{"drain", "r1-9"}, []string{"drain r1-9", "no node", "r1-1"}},
		{"no such level", []string{"drain", "row=r1"}, []string{"drain row=r1", `level "row"`, "rack"}},
		{"no such rack", []string{"drain", "rack=r3"}, []string{"drain rack=r3", "no such rack", "b1/r"}},
		{"two clusters", []string{"queue", "--snapshot", torn, "--kubeconfig", "k"}, []string{"--snapshot, --kubeconfig", "two"}},
		{"no snapshot", []string{"queue", "--snapshot", "gone.json"}, []string{"gone.json"}},
		{"without a kind", []string{"queue", "--snapshot", torn}, []string{"torn.json:1", "nodes"}},
		{"no job in the file", []string{"--with-job", plain}, []string{"plain.yaml", "no TrainJob"}},
		{"a job at fault", []string{"--with-job", wrong}, []string{"wrong.yaml:2", "numNodes", "0"}},
		{"an unknown wish", []string{"--with-job", hard}, []string{"hard.yaml:1", "required-topologie"}},
		{"no runtime", []string{"--with-job", orphan}, []string{"orphan.yaml:", "torch-distribute", "torch-distributed"}},
		{"there already", []string{"--with-job", twin}, []string{"twin.yaml:1", "default/over already"}},
		{"another scheduler", []string{"queue", "--scheduler-config", other}, []string{"other.yaml", "GangPlacement"}},
		{"a level", []string{"queue", "--scheduler-config", level}, []string{"level.yaml", "levels[0].key"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			code, out, stderr := l.explain(t, test.args...)
			line, rest, _ := strings.Cut(stderr, "\n")
			if code != 2 || out != "" || rest != "" {
				t.Errorf("exit %d, stdout %q, stderr %s", code, out, stderr)
			}
			at := 0
			for _, part := range test.want {
				found := strings.Index(line[at:], part)
				if found < 0 {
					t.Errorf("%q is not in, or not in order in: %s", part, line)
					break
				}
				at += found
			}
		})
	}
}

// Agents read one object from stdout, whatever becomes of the job, and nothing else; stderr is for people, and for
// input that cannot be used.
func TestExplain_JSONIsOneObject(t *testing.T) {
	l := newLab(t, draw(t, "r1: aa.."), idle)
	for question, wantCode := range map[string]int{
		"trainjob over": 0, "trainjob queued": 1, "trainjob orphan": 1, "trainjob fresh": 1, "trainjob loose": 1,
		"podgroup a": 0, "queue": 0, "trainjob absent": 2, "podgroup absent": 2, "nonsense": 2,
	} {
		code, out, stderr := l.explain(t, append(strings.Fields(question), "-o", "json")...)
		if code != wantCode {
			t.Errorf("%s: exit %d, want %d: %s%s", question, code, wantCode, out, stderr)
		}
		if wantCode == 2 {
			if out != "" || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%s: %q on stdout, %q on stderr; want nothing, and one line", question, out, stderr)
			}
			continue
		}
		decoder := json.NewDecoder(strings.NewReader(out))
		decoder.DisallowUnknownFields()
		var answer explain.Answer
		if err := decoder.Decode(&answer); err != nil || decoder.More() || stderr != "" || answer.At.IsZero() {
			t.Errorf("%s: %v; more after it: %v; stderr %q:\n%s", question, err, decoder.More(), stderr, out)
		}
		if starts := answer.Starts(); starts != (code == 0) {
			t.Errorf("%s: exit %d, and the answer says that it starts: %v", question, code, starts)
		}
	}
}
