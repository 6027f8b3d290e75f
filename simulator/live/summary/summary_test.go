package summary_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/simulator/inputs/fleet"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
	"github.com/lockstep-project/lockstep/topology"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func levels() []topology.Level {
	return []topology.Level{
		{Name: "tier-1", Key: "fabric.topograph.run/tier-1"},
		{Name: "tier-0", Key: "fabric.topograph.run/tier-0"},
		{Name: "rack", Key: "accelerator.topograph.run/domain"},
		{Name: "clique", Key: "nvidia.com/gpu.clique"},
		{Name: "node", Key: corev1.LabelHostname},
	}
}

// scene holds the objects that a script has set up.
type scene struct {
	ledger *summary.Ledger
	seen   summary.Observation
	pods   int
}

func newScene(t *testing.T) *scene {
	t.Helper()
	opened, err := fleet.Open("gb200-72")
	if err != nil {
		t.Fatal(err)
	}
	return &scene{
		ledger: summary.NewLedger(),
		seen: summary.Observation{
			Fleet: opened.Name, At: start.Add(90 * time.Second), Levels: levels(), Nodes: opened.Nodes,
		},
	}
}

// TestSummarize_Scripts runs the scripts in testdata on the fleet gb200-72, looking 90 s after the start. Commands:
//
//	job name=N [namespace=S] [framework=F] [submitted=SEC] [min=COUNT] [end=TYPE at=SEC]
//	    adds a TrainJob; the lines below it become messages: "job: …" of its last condition, "group: …" of its
//	    PodGroup, "own: …" of Lockstep's condition there
//	pods job=N [rj=NAME] [at=SEC] [phase=P] [new] [deleted]
//	    shows pods to the ledger, one a line with its completion index: "0 node" bound, "0 - why" waiting
//	table [width=W] [color]   json   progress [width=W]
func TestSummarize_Scripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, file string) {
		t.Helper()
		s := newScene(t)
		datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
			t.Helper()
			switch d.Cmd {
			case "reset":
				s = newScene(t)
			case "job":
				s.addJob(t, d)
			case "pods":
				s.showPods(t, d)
			case "table":
				var b strings.Builder
				style := summary.Style{Width: number(t, d, "width"), Color: d.HasArg("color")}
				if err := summary.WriteTable(&b, summary.Summarize(s.seen, s.ledger), style); err != nil {
					t.Fatal(err)
				}
				return strings.ReplaceAll(b.String(), "\x1b", "ESC")
			case "json":
				text, err := json.MarshalIndent(summary.Summarize(s.seen, s.ledger), "", " ")
				if err != nil {
					t.Fatal(err)
				}
				return string(text) + "\n"
			case "progress":
				var all []summary.Progress
				for _, job := range s.seen.Jobs {
					all = append(all, s.ledger.Progress(job))
				}
				return summary.ProgressLine(all, number(t, d, "width")) + "\n"
			default:
				d.Fatalf(t, "unknown command %s", d.Cmd)
			}
			return ""
		})
	})
}

func (s *scene) addJob(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	job := summary.JobObservation{
		TrainJob:    &unstructured.Unstructured{Object: map[string]any{}},
		Framework:   value(d, "framework", "torch"),
		SubmittedAt: start.Add(time.Duration(number(t, d, "submitted")) * time.Second),
	}
	job.TrainJob.SetName(value(d, "name", ""))
	job.TrainJob.SetNamespace(value(d, "namespace", "default"))
	messages := map[string]string{}
	for line := range strings.Lines(d.Input) {
		who, said, _ := strings.Cut(strings.TrimSpace(line), ": ")
		messages[who] = said
	}
	if end := value(d, "end", ""); end != "" {
		ended := start.Add(time.Duration(number(t, d, "at")) * time.Second)
		condition := map[string]any{
			"type": end, "status": "True", "message": messages["job"], "lastTransitionTime": ended.Format(time.RFC3339),
		}
		if err := unstructured.SetNestedSlice(
			job.TrainJob.Object,
			[]any{condition},
			"status",
			"conditions",
		); err != nil {
			t.Fatal(err)
		}
	}
	if d.HasArg("min") {
		job.PodGroups = []*schedulingv1beta1.PodGroup{podGroup(int32(number(t, d, "min")), messages)}
	}
	name := job.TrainJob.GetName()
	s.seen.Jobs = slices.DeleteFunc(
		s.seen.Jobs,
		func(j summary.JobObservation) bool { return j.TrainJob.GetName() == name },
	)
	s.seen.Jobs = append(s.seen.Jobs, job)
}

func podGroup(minCount int32, messages map[string]string) *schedulingv1beta1.PodGroup {
	group := &schedulingv1beta1.PodGroup{}
	group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: minCount}
	if said := messages["group"]; said != "" {
		group.Status.Conditions = append(group.Status.Conditions, metav1.Condition{
			Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse, Message: said,
		})
	}
	if said := messages["own"]; said != "" {
		group.Status.Conditions = append(group.Status.Conditions, metav1.Condition{
			Type: "lockstep.dev/Waiting", Status: metav1.ConditionTrue, Message: said,
		})
	}
	return group
}

func (s *scene) showPods(t *testing.T, d *datadriven.TestData) {
	t.Helper()
	replicatedJob := value(d, "rj", "node")
	at := metav1.NewTime(start.Add(time.Duration(number(t, d, "at")) * time.Second))
	job := value(d, "job", "")
	lines := bufio.NewScanner(strings.NewReader(d.Input))
	for lines.Scan() {
		index, rest, _ := strings.Cut(lines.Text(), " ")
		node, message, _ := strings.Cut(rest, " ")
		name := fmt.Sprintf("%s-%s-0-%s", job, replicatedJob, index)
		if d.HasArg("new") {
			s.pods++
			name += "-again"
		}
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: value(d, "namespace", "default"), UID: types.UID(name), CreationTimestamp: at,
				Labels: map[string]string{
					"jobset.sigs.k8s.io/jobset-name":           job,
					"jobset.sigs.k8s.io/replicatedjob-name":    replicatedJob,
					"jobset.sigs.k8s.io/job-index":             "0",
					"batch.kubernetes.io/job-completion-index": index,
				},
			},
			Status: corev1.PodStatus{Phase: corev1.PodPhase(value(d, "phase", "Pending"))},
		}
		condition := corev1.PodCondition{
			Type:               corev1.PodScheduled,
			Status:             corev1.ConditionTrue,
			LastTransitionTime: at,
		}
		if node == "-" {
			condition.Status, condition.Message = corev1.ConditionFalse, message
		} else {
			pod.Spec.NodeName = node
		}
		pod.Status.Conditions = []corev1.PodCondition{condition}
		if d.HasArg("deleted") {
			s.ledger.ObserveDeletion(pod, condition.LastTransitionTime.Time)
			continue
		}
		s.ledger.Observe(pod, condition.LastTransitionTime.Time)
	}
}

func value(d *datadriven.TestData, key, otherwise string) string {
	for _, arg := range d.CmdArgs {
		if arg.Key == key && len(arg.Vals) > 0 {
			return arg.Vals[0]
		}
	}
	return otherwise
}

func number(t *testing.T, d *datadriven.TestData, key string) int {
	t.Helper()
	n, err := strconv.Atoi(value(d, key, "0"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
