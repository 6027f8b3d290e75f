package summary_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/lockstep-project/lockstep/simulator/live/summary"
	"github.com/lockstep-project/lockstep/topology"
)

func TestFramework(t *testing.T) {
	for _, tc := range []struct{ runtime, want string }{
		{runtime: "spec: {mlPolicy: {numNodes: 2, torch: {}}}", want: "torch"},
		{runtime: "spec: {mlPolicy: {jax: {}}}", want: "jax"},
		{runtime: "spec: {mlPolicy: {xgboost: {}}}", want: "xgboost"},
		{runtime: "spec: {mlPolicy: {mpi: {numProcPerNode: 4}}}", want: "mpi"},
		{runtime: "spec: {mlPolicy: {flux: {}}}", want: "flux"},
		{runtime: "spec: {mlPolicy: {numNodes: 2}}", want: "plain"},
		{runtime: "spec: {mlPolicy: {torch: null}}", want: "plain"},
		{runtime: "spec: {mlPolicy: none}", want: "plain"},
		{runtime: "{}", want: "plain"},
	} {
		var runtime unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(tc.runtime), &runtime.Object); err != nil {
			t.Fatal(err)
		}
		if got := summary.Framework(&runtime); got != tc.want {
			t.Errorf("%s: got %s, want %s", tc.runtime, got, tc.want)
		}
	}
}

func TestAllComplete(t *testing.T) {
	for _, tc := range []struct {
		outcomes []string
		want     bool
	}{
		{outcomes: nil, want: true},
		{outcomes: []string{summary.Complete, summary.Complete}, want: true},
		{outcomes: []string{summary.Complete, summary.Failed}, want: false},
		{outcomes: []string{summary.Unplaced}, want: false},
	} {
		var report summary.Report
		for _, one := range tc.outcomes {
			report.Jobs = append(report.Jobs, summary.Job{Outcome: one})
		}
		if got := report.AllComplete(); got != tc.want {
			t.Errorf("%v: got %t, want %t", tc.outcomes, got, tc.want)
		}
	}
}

func TestLedger_ConcurrentAndOwnPodsOnly(t *testing.T) {
	ledger := summary.NewLedger()
	job := summary.JobObservation{TrainJob: &unstructured.Unstructured{Object: map[string]any{}}}
	job.TrainJob.SetName("train")
	ledger.Observe(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}, time.Time{})
	ledger.ObserveDeletion(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "stranger"}}, time.Time{})
	var group sync.WaitGroup
	for i := range 64 {
		group.Go(func() {
			name := fmt.Sprintf("train-node-0-%d", i)
			ledger.Observe(&corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{
					Name: name, UID: types.UID(name),
					Labels: map[string]string{"jobset.sigs.k8s.io/jobset-name": "train"},
				},
				Spec: corev1.PodSpec{NodeName: "n"},
			}, time.Time{})
			ledger.Progress(job)
		})
	}
	group.Wait()
	if got := ledger.Progress(job); got.Members != 64 || got.Placed != 64 {
		t.Errorf("got %+v, want 64 members, all placed", got)
	}
}

type brokenPipe struct{}

var errBroken = errors.New("broken pipe")

func (brokenPipe) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteTable_ReturnsWriteErrors(t *testing.T) {
	if err := summary.WriteTable(brokenPipe{}, summary.Report{}, summary.Style{}); !errors.Is(err, errBroken) {
		t.Errorf("got %v", err)
	}
}

// Two cliques whose UUIDs begin alike retain their full names, which otherwise would be ambiguous.
func TestWriteTable_ShortNamesAreUnambiguous(t *testing.T) {
	const one, other = "6d66e126-f428-8bff-86ac-9903b9740626.1", "6d66e126-0000-8bff-86ac-9903b9740626.1"
	report := summary.Report{
		Levels: []topology.Level{{Name: "clique", Key: "nvidia.com/gpu.clique"}},
		Jobs: []summary.Job{{Name: "train", Ranks: []summary.Rank{
			{Rank: 0, Node: "a", Domains: map[string]string{"clique": one}},
			{Rank: 1, Node: "b", Domains: map[string]string{"clique": other}},
		}}},
	}
	var b strings.Builder
	if err := summary.WriteTable(&b, report, summary.Style{}); err != nil {
		t.Fatal(err)
	}
	for _, clique := range []string{one, other} {
		if !strings.Contains(b.String(), "clique="+clique+" ") {
			t.Errorf("%s is not told apart:\n%s", clique, b.String())
		}
	}
}

// The API cuts instants to the second. An instant that was seen live is reported to the millisecond, and one that was
// seen later is not reported as later than it can have been.
func TestSummarize_WaitsAreSharperThanTheAPI(t *testing.T) {
	submitted := time.Unix(1000, 0).Add(300 * time.Millisecond)
	for _, tc := range []struct {
		name string
		seen time.Time
		want float64
	}{
		{"seen live", time.Unix(1000, 0).Add(750 * time.Millisecond), 0.45},
		{"seen a minute later", time.Unix(1060, 0), 0.7},
		{"seen by a clock that lags", time.Unix(999, 0), 0},
	} {
		ledger := summary.NewLedger()
		ledger.Observe(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name:   "p",
				Labels: map[string]string{"jobset.sigs.k8s.io/jobset-name": "train"},
			},
			Spec: corev1.PodSpec{NodeName: "n"},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1000, 0),
			}}},
		}, tc.seen)
		job := summary.JobObservation{
			TrainJob: &unstructured.Unstructured{Object: map[string]any{}}, SubmittedAt: submitted,
		}
		job.TrainJob.SetName("train")
		seen := summary.Observation{At: time.Unix(1100, 0), Jobs: []summary.JobObservation{job}}
		if got := summary.Summarize(seen, ledger).Jobs[0].WaitSeconds; got != tc.want {
			t.Errorf("%s: waited %v s, want %v s", tc.name, got, tc.want)
		}
	}
}

// kube-scheduler's text around a plugin's reason is not for users.
func TestSummarize_StripsFrameOfReasons(t *testing.T) {
	const reason = "needs 20 members in one clique; nearest rack-1: 18 of 20"
	for _, message := range []string{
		reason,
		"0/74 nodes are available: " + reason + ".",
		"0/74 nodes are available: " + reason + "., pod group preemption: No preemption victims found for incoming preemptor",
	} {
		job := summary.JobObservation{
			TrainJob: &unstructured.Unstructured{Object: map[string]any{}},
			PodGroups: []*schedulingv1beta1.PodGroup{{}, {
				Status: schedulingv1beta1.PodGroupStatus{Conditions: []metav1.Condition{{
					Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionFalse, Message: message,
				}}},
			}},
		}
		report := summary.Summarize(summary.Observation{Jobs: []summary.JobObservation{job}}, summary.NewLedger())
		if got := report.Jobs[0].Reason; got != reason {
			t.Errorf("%s:\n got %s", message, got)
		}
	}
}

// A job with several gangs has at least the members of all.
func TestProgress_MembersOfSeveralGangs(t *testing.T) {
	gang := func(count int32) *schedulingv1beta1.PodGroup {
		group := &schedulingv1beta1.PodGroup{}
		group.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: count}
		return group
	}
	job := summary.JobObservation{
		TrainJob:  &unstructured.Unstructured{Object: map[string]any{}},
		PodGroups: []*schedulingv1beta1.PodGroup{gang(4), {}, gang(1)},
	}
	if got := summary.NewLedger().Progress(job).Members; got != 5 {
		t.Errorf("%d members, want 5", got)
	}
}
