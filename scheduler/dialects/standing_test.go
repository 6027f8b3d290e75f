package dialects_test

import (
	"maps"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/scheduler/dialects"
)

// inPhases returns members of a gang that needs three: w waits, s has a node, r runs, d is done, f has failed.
func inPhases(letters string) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, letter := range letters {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "m", OwnerReferences: []metav1.OwnerReference{{Name: "b"}, {Name: "a"}},
		}}
		pod.Status.Phase = map[rune]corev1.PodPhase{
			'w': corev1.PodPending, 's': corev1.PodPending, 'r': corev1.PodRunning, 'd': corev1.PodSucceeded, 'f': corev1.PodFailed,
		}[letter]
		if letter != 'w' {
			pod.Spec.NodeName = "n"
		}
		pods = append(pods, pod)
	}
	return pods
}

// The status of a group has the values that its users expect: that of scheduler-plugins its words, and a configured one
// those of its row.
func TestDialect_Status(t *testing.T) {
	for members, want := range map[string]struct{ phase, volcano string }{
		"":     {"Pending", "Pending"},
		"www":  {"Pending", "Pending"},
		"wss":  {"Pending", "Pending"},
		"sss":  {"Scheduling", "Inqueue"},
		"rrs":  {"Scheduling", "Inqueue"},
		"rrr":  {"Running", "Running"},
		"rrrw": {"Running", "Running"},
		"drr":  {"Running", "Running"},
		"rrf":  {"Failed", "Unknown"},
		"rf":   {"Pending", "Pending"},
		"ddd":  {"Finished", "Completed"},
		"dddf": {"Finished", "Completed"},
	} {
		standing := dialects.StandingOf(3, time.Unix(1, 0), inPhases(members)...)
		for dialect, phase := range map[string]string{"scheduler-plugins": want.phase, "volcano": want.volcano} {
			of, _ := all(t).ByName(dialect)
			if got := of.Status(standing)["phase"]; got != phase {
				t.Errorf("%s: the phase of members %q is %v, want %s", dialect, members, got, phase)
			}
		}
	}
	of, _ := all(t).ByName("scheduler-plugins")
	got := of.Status(dialects.StandingOf(3, time.Unix(1, 0), inPhases("rdff")...))
	want := map[string]any{
		"phase": "Failed", "occupiedBy": "team/a,team/b", "scheduleStartTime": "1970-01-01T00:00:01Z",
		"running": int64(1), "succeeded": int64(1), "failed": int64(2),
	}
	if !maps.Equal(got, want) {
		t.Errorf("the status is %v, want %v", got, want)
	}
}

// Only fields that differ are written, and the status of a gang that is over stays when its pods are deleted.
func TestDialect_Changes(t *testing.T) {
	of, _ := all(t).ByName("volcano")
	for name, c := range map[string]struct {
		status  map[string]any
		members string
		want    map[string]any
	}{
		"a status that is new":           {nil, "rrr", map[string]any{"phase": "Running", "running": int64(3)}},
		"one that holds":                 {map[string]any{"phase": "Running", "running": int64(3)}, "rrr", nil},
		"one that changed":               {map[string]any{"phase": "Running", "running": int64(3)}, "rr", map[string]any{"phase": "Pending", "running": int64(2)}},
		"the pods of a finished gang go": {map[string]any{"phase": "Completed", "succeeded": int64(3)}, "d", nil},
		"all pods of a running gang go":  {map[string]any{"phase": "Running", "running": int64(3)}, "", map[string]any{"phase": "Pending", "running": int64(0)}},
		"a finished gang starts again":   {map[string]any{"phase": "Completed", "succeeded": int64(3)}, "ww", map[string]any{"phase": "Pending", "succeeded": int64(0)}},
	} {
		got := of.Changes(c.status, dialects.StandingOf(3, time.Time{}, inPhases(c.members)...))
		if !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// A status of a row needs an object, fields and expressions that can be read; one whose expression fails writes nothing.
func TestConfigured_Status(t *testing.T) {
	const row = "{name: a, member: {labels: [a]}, minimum: '1', object: {resource: things.v1.example.com}, status: "
	for status, valid := range map[string]bool{
		"{phase: gang.phase, share: 'double(gang.running) / 2.0'}}": true,
		"{phase: gang.missing, list: '[1]'}}":                       true,
		"{'a.b': gang.phase}}":                                      false,
		"{phase: gang.phase +}}":                                    false,
		"{phase: pod.metadata.name}}":                               false,
	} {
		var of dialects.Row
		if err := yaml.UnmarshalStrict([]byte(row+status), &of); err != nil {
			t.Fatal(err)
		}
		dialect, err := dialects.Configured(of)
		if (err == nil) != valid {
			t.Errorf("%s: %v", status, err)
		}
		if err == nil && of.Status["share"] != "" && dialect.Status(dialects.Standing{Running: 3})["share"] != 1.5 {
			t.Errorf("%s: it writes %v", status, dialect.Status(dialects.Standing{Running: 3}))
		}
		if err == nil && of.Status["list"] != "" && len(dialect.Status(dialects.Standing{})) > 0 {
			t.Errorf("%s: it writes %v", status, dialect.Status(dialects.Standing{}))
		}
	}
	if _, err := dialects.Configured(dialects.Row{
		Name:    "a",
		Member:  dialects.Keys{Labels: []string{"a"}},
		Minimum: "1",
		Status:  map[string]string{"phase": "gang.phase"},
	}); err == nil {
		t.Error("a status of no object is taken")
	}
}
