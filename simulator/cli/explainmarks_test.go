package cli_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/dialects"
	"github.com/lockstep-project/lockstep/scheduler/whatif/whatiftest"
	"github.com/lockstep-project/lockstep/simulator/explain"
)

// marked are gangs whose pods are marked: by a row of the scheduler's configuration, with an alias of the scheduler and
// a second mark; by a built-in mark; and by our label beside another mark.
const marked = `apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata:
  name: crew.night
  namespace: default
  creationTimestamp: "2026-01-01T00:00:00Z"
  annotations:
    lockstep.dev/dialect: crew
    lockstep.dev/dialect-row: 'ROW'
    lockstep.dev/schedulers: lockstep-scheduler,scheduler-plugins-scheduler
spec: {schedulingPolicy: {gang: {minCount: 1}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: crew-0
  namespace: default
  labels: {example.com/crew: night, batch.kubernetes.io/job-name: sweep}
  annotations: {lockstep.dev/gang: "on"}
spec: {schedulerName: scheduler-plugins-scheduler, containers: [{name: main, image: a}]}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: scheduler-plugins.pi, namespace: default, creationTimestamp: "2026-01-01T00:00:00Z", annotations: {lockstep.dev/dialect: scheduler-plugins}}
spec: {schedulingPolicy: {gang: {minCount: 1}}}
---
apiVersion: v1
kind: Pod
metadata:
  name: pi
  namespace: default
  labels: {scheduling.x-k8s.io/pod-group: pi, kueue.x-k8s.io/pod-group-name: sky}
spec: {schedulerName: lockstep-scheduler, containers: [{name: main, image: a}]}
---
apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: own, namespace: default, creationTimestamp: "2026-01-01T00:00:00Z"}
spec: {schedulingPolicy: {gang: {minCount: 1}}}
---
apiVersion: v1
kind: Pod
metadata: {name: own, namespace: default, labels: {lockstep.dev/pod-group: own, kueue.x-k8s.io/pod-group-name: sky}}
spec: {schedulerName: lockstep-scheduler, containers: [{name: main, image: a}]}
`

// The answer names the mark that was read, also for a dialect that only the scheduler's configuration has, and the
// marks that did not count; live, and from a snapshot.
func TestExplain_SaysWhichMarkWasRead(t *testing.T) {
	row, err := json.Marshal(dialects.Row{
		Name: "crew", Member: dialects.Keys{Labels: []string{"example.com/crew"}}, Minimum: "1",
	})
	if err != nil {
		t.Fatal(err)
	}
	objects := draw(t, "r1: aaaa ....")
	content := strings.Replace(marked, "ROW", string(row), 1)
	l := newLab(t, objects, content)
	file := filepath.Join(l.dir, "c.snapshot.json.gz")
	if code, _, stderr := executeAt(t, whatiftest.Now(), "snapshot", "-o", file); code != 0 {
		t.Fatal(stderr)
	}
	for name, want := range map[string]string{
		"crew.night": `  its pods are marked by crew: label example.com/crew, group night
  marks that do not count beside it: job (label batch.kubernetes.io/job-name, group sweep)
`,
		"scheduler-plugins.pi": `  its pods are marked by scheduler-plugins: label scheduling.x-k8s.io/pod-group, group pi
  marks that do not count beside it: kueue (label kueue.x-k8s.io/pod-group-name, group sky)
`,
		"own": `  its pods name it themselves: label lockstep.dev/pod-group
  marks that do not count beside it: kueue (label kueue.x-k8s.io/pod-group-name, group sky)
`,
	} {
		for _, args := range [][]string{{"podgroup", name}, {"podgroup", name, "--snapshot", file}} {
			code, out, stderr := l.explain(t, args...)
			if code != 0 || !strings.Contains(out, want) ||
				!strings.HasPrefix(out, "default/"+name+" fits: it starts") {
				t.Errorf("%v: exit %d; %s\n%swant:\n%s", args, code, stderr, out, want)
			}
		}
	}
	_, out, _ := l.explain(t, "podgroup", "scheduler-plugins.pi", "-o", "json")
	var answer explain.Answer
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	if mark := answer.Gangs[0].Mark; mark == nil || mark.Dialect != "scheduler-plugins" || len(mark.Ignored) != 1 {
		t.Errorf("the mark is %+v", mark)
	}
}
