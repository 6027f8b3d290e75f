package config_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/scheduler/config"
	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/topology"
)

// raw is arguments as kube-scheduler hands them over.
func raw(text string) runtime.Object {
	return &runtime.Unknown{Raw: []byte(text), ContentType: runtime.ContentTypeJSON}
}

func TestGangPlacementArgs_Defaults(t *testing.T) {
	for _, object := range []runtime.Object{nil, raw(""), raw("{}")} {
		placement, err := config.Placement(object)
		ladder, ladderErr := placement.Ladder()
		if err != nil || ladderErr != nil || ladder != nil || placement.Accelerators[0] != "nvidia.com/gpu" {
			t.Errorf("%+v, %v, %v %v", placement, err, ladder, ladderErr)
		}
		if permit, err := config.Permit(object); err != nil || permit.Grace.Duration != time.Minute {
			t.Errorf("%+v, %v", permit, err)
		}
	}
}

func TestLevels(t *testing.T) {
	args, err := config.Placement(raw(`{
		"apiVersion": "scheduler.lockstep.dev/v1alpha1", "kind": "GangPlacementArgs", "accelerators": ["example.com/npu"],
		"levels": [{"key": "example.com/row"}, {"key": "example.com/rack", "name": "cabinet", "weight": 50},
			{"key": "kubernetes.io/hostname"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := args.Ladder()
	want := []topology.Level{
		{Name: "row", Key: "example.com/row"}, {Name: "cabinet", Key: "example.com/rack", Weight: 50},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestGangPlacementArgs_MistakesNameTheField(t *testing.T) {
	for text, want := range map[string]string{
		`{demand: {mode: gang}}`:                                          "demand.mode",
		`{demand: {class: "A b"}}`:                                        "demand.class",
		`{"level": []}`:                                                   `unknown field "level"`,
		`{"levels": [{"name": "rack"}]}`:                                  "levels[0].key: Required value",
		`{"levels": [{"key": "a"}, {"key": "a"}]}`:                        `levels[1].key: Duplicate value: "a"`,
		`{"levels": [{"key": "a", "weight": 0}]}`:                         "levels[0].weight: Invalid value: 0",
		`{"levels": [{"key": "a/x"}, {"key": "b", "name": "x"}]}`:         "levels: Invalid value",
		`{"unhealthyConditions": [{"status": "True"}]}`:                   "unhealthyConditions[0].type: Required value",
		`{"unhealthyConditions": [{"type": "X", "status": "bad"}]}`:       `unhealthyConditions[0].status: Unsupported value: "bad"`,
		`{"unhealthyConditions": [{"type": "Ready", "status": "False"}]}`: `unhealthyConditions[0].type: Invalid value: "Ready"`,
		`{"preemption": {"prices": [{"percent": -1}]}}`:                   "preemption.prices[0].percent: Invalid value: -1",
		`{"preemption": {"prices": [{}, {"fromPriority": -5}]}}`:          "preemption.prices[1].fromPriority: Invalid value: -5",
		`{"preemption": {"restartTime": "-1s"}}`:                          `preemption.restartTime: Invalid value: "-1s"`,
		`{"preemption": {"minRunTime": "-1s"}}`:                           `preemption.minRunTime: Invalid value: "-1s"`,
		`{"queueing": {"discipline": "lifo"}}`:                            `queueing.discipline: Unsupported value: "lifo": supported values: "fifo", "backfill", "promise"`,
		`{"queueing": {"discipline": "promise", "slackPercent": -1}}`:     "queueing.slackPercent: Invalid value: -1",
		`{"queueing": {"idleTime": "500ms"}}`:                             `queueing.idleTime: Invalid value: "500ms"`,
		`{"queueing": {"discipline": "promise", "slackPercent": 1001}}`:   "queueing.slackPercent: Invalid value: 1001",
		`{"queueing": {"discipline": "fifo", "slackPercent": 5}}`:         "queueing.slackPercent: Invalid value: 5",
		`{"queueing": {"togetherPercent": 101}}`:                          "queueing.togetherPercent: Invalid value: 101",
		`{"queueing": {"guessWeight": 0}}`:                                "queueing.guessWeight: Invalid value: 0",
		`{"queueing": {"idleTime": "-1s"}}`:                               `queueing.idleTime: Invalid value: "-1s"`,
		`{"queueing": {"horizon": "-1s"}}`:                                `queueing.horizon: Invalid value: "-1s"`,
		`{"preemption": {"mostPerDay": -1}}`:                              "preemption.mostPerDay: Invalid value: -1",
		`{"quarantine": {"halfLife": "-1s"}}`:                             `quarantine.halfLife: Invalid value: "-1s"`,
		`{"quarantine": {"mostPercent": 101}}`:                            "quarantine.mostPercent: Invalid value: 101",
		`{"apiVersion": "scheduler.lockstep.dev/v9"}`:                     `apiVersion: Unsupported value: "scheduler.lockstep.dev/v9"`,
	} {
		if _, err := config.Placement(raw(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		`{"grace": "soon"}`:         "invalid duration",
		`{"grace": "0s"}`:           `grace: Invalid value: "0s"`,
		`{"repairTimeout": "10ms"}`: `repairTimeout: Invalid value: "10ms"`,
	} {
		if _, err := config.Permit(raw(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := config.Placement(&metav1.Status{}); err == nil {
		t.Error("arguments of another kind are taken")
	}
}

func TestPreemption(t *testing.T) {
	for text, want := range map[string]contention.Terms{
		"{}":                               contention.DefaultTerms(),
		`{"preemption": {"prices": []}}`:   contention.UnpricedTerms(),
		`{"preemption": {"prices": null}}`: contention.DefaultTerms(),
		`{"preemption": {"prices": [{"fromPriority": -10, "percent": 50}, {"fromPriority": 1000}],
			"restartTime": "5m", "minRunTime": "1h", "mostPerDay": 0}}`: {
			Prices: []contention.Price{{From: -10, Percent: 50}, {From: 1000}}, Restart: 300, MinRun: 3600,
		},
	} {
		args, err := config.Placement(raw(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, args.Terms()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestQueueing(t *testing.T) {
	own := contention.Promise()
	own.Slack, own.Budget, own.GuessWeight, own.Horizon = 20, 0, 3, 48*3600
	for text, want := range map[string]contention.Discipline{
		"{}": contention.DefaultPolicy().Discipline,
		`{"queueing": {"discipline": "backfill"}}`: contention.Backfill(),
		`{"queueing": {"discipline": "fifo"}}`:     contention.FIFO(),
		`{"queueing": {"discipline": "promise"}}`:  contention.Promise(),
		`{"queueing": {"discipline": "promise", "slackPercent": 20, "idleTime": "0s", "guessWeight": 3, "horizon": "48h"}}`: own,
	} {
		args, err := config.Placement(raw(text))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, args.Discipline()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestDemand(t *testing.T) {
	args, err := config.Placement(nil)
	if want := (config.Demand{Mode: config.DemandPods, Class: config.DefaultProvisioningClass}); err != nil ||
		args.Demand != want {
		t.Errorf("the default is %+v, %v", args.Demand, err)
	}
}

func TestHealth(t *testing.T) {
	for text, want := range map[string]int{
		`{}`:                          len(nodehealth.Default().Conditions),
		`{"unhealthyConditions": []}`: 0,
		`{"unhealthyConditions": [{"type": "X"}, {"type": "Fine", "status": "False"}]}`: 2,
	} {
		args, err := config.Placement(raw(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := args.Health().Conditions; len(got) != want {
			t.Errorf("%s: %v", text, got)
		}
		if got, want := args.Strikes(), (nodehealth.Limits{HalfLife: 2 * time.Hour, MostPercent: 5}); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}

// The chart's policies about pods know the same accelerators.
func TestDefaultAccelerators_InTheChart(t *testing.T) {
	rendered, err := render.Chart(render.Default().With("neighbors.pods.byLockstep", true))
	if err != nil {
		t.Fatal(err)
	}
	policies := rendered.Find("MutatingAdmissionPolicy", "acceleratorpods.lockstep.dev")
	if len(policies) != 1 {
		t.Fatalf("there are %d policies", len(policies))
	}
	text, err := json.Marshal(config.DefaultAccelerators())
	if err != nil {
		t.Fatal(err)
	}
	variables, _, _ := unstructured.NestedSlice(policies[0].Object, "spec", "variables")
	first, _ := variables[0].(map[string]any)
	if expression, _ := first["expression"].(string); strings.Join(strings.Fields(expression), "") != string(text) {
		t.Errorf("the chart has %v, want %s", first["expression"], text)
	}
}
