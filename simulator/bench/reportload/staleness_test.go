package reportload_test

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/simulator/bench/reportload"
)

// Two jobs had reports accepted. One shows its newest, which is then reverted; the other shows one of ten seconds
// before. The API server ends the first watch.
func TestShown_Follow(t *testing.T) {
	start := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
	client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{reportload.TrainJobs(): "TrainJobList"})
	var watches atomic.Int32
	client.PrependWatchReactor("trainjobs", func(clienttesting.Action) (bool, watch.Interface, error) {
		if watches.Add(1) > 1 {
			return false, nil, nil
		}
		ended := watch.NewFake()
		ended.Stop()
		return true, ended, nil
	})
	now := clocktesting.NewFakePassiveClock(start)
	shown := reportload.NewShown(now)
	failed := make(chan error, 1)
	go func() { failed <- shown.Follow(t.Context(), client, "default") }()
	watched := func() (bool, error) { return len(client.Actions()) > 1, nil }
	if err := wait.PollUntilContextTimeout(
		t.Context(),
		time.Millisecond,
		time.Minute,
		true,
		ignoring(watched),
	); err != nil {
		t.Fatal(err)
	}

	show := func(i int, sent time.Time, writes int) {
		t.Helper()
		job := reportload.TrainJob("default", i)
		metrics := []any{map[string]any{
			"name": reportload.SentMetric, "value": strconv.FormatInt(sent.UnixMilli(), 10),
		}}
		if err := unstructured.SetNestedSlice(job.Object, metrics, "status", "trainerStatus", "metrics"); err != nil {
			t.Fatal(err)
		}
		jobs := client.Resource(reportload.TrainJobs()).Namespace("default")
		_, err := jobs.Create(t.Context(), job, metav1.CreateOptions{})
		if err != nil {
			_, err = jobs.Update(t.Context(), job, metav1.UpdateOptions{})
		}
		if err != nil {
			t.Fatal(err)
		}
		seen := func() (bool, error) { return shown.Counts().Writes == writes, nil }
		if err := wait.PollUntilContextTimeout(
			t.Context(),
			time.Millisecond,
			time.Minute,
			true,
			ignoring(seen),
		); err != nil {
			t.Fatalf("%+v, want %d writes: %v", shown.Counts(), writes, err)
		}
	}
	shown.Accept(0, start)
	shown.Accept(1, start)
	show(0, start, 1)
	show(1, start.Add(-10*time.Second), 2)
	if counts := shown.Counts(); counts != (reportload.Counts{Accepted: 2, Behind: 1, Writes: 2}) {
		t.Errorf("%+v, want one job behind", counts)
	}
	now.SetTime(start.Add(time.Second))
	if oldest := reportload.Quantile(shown.Ages(), 1); oldest != 11*time.Second {
		t.Errorf("the oldest report is %v old, want 11 s", oldest)
	}
	show(0, start.Add(-time.Second), 3)
	if counts := shown.Counts(); counts.Backwards != 1 || counts.Behind != 2 {
		t.Errorf("%+v, want one that went back, and two behind", counts)
	}
	select {
	case err := <-failed:
		t.Errorf("the watch ended: %v", err)
	default:
	}
}

// A job whose reports are accepted and never shown is the worst of all: it must not be left out of the ages.
func TestShown_AgesOfAJobThatShowsNothing(t *testing.T) {
	start := time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC)
	now := clocktesting.NewFakePassiveClock(start)
	shown := reportload.NewShown(now)
	for i := range 4 {
		now.SetTime(start.Add(time.Duration(i) * 5 * time.Second))
		shown.Accept(0, now.Now())
	}
	if ages := shown.Ages(); len(ages) != 1 || ages[0] != 15*time.Second {
		t.Errorf("ages %v, want 15 s: since the first report that was accepted", ages)
	}
}

// The tables list the responses by code, with "none" for no response, and the reports per second.
func TestWrite_PrintsBothTables(t *testing.T) {
	result := reportload.Result{
		Jobs:    10,
		Seconds: 2,
		Codes:   map[int]int{200: 3, 0: 1},
		Writes:  map[string]float64{"written": 8, "conflict": 1, "failed": 3, "gone": 1},
		Calls:   12,
		Cores:   map[string]float64{"generator": 0.5, "kwok": 0},
	}
	result.SetLatencies([]time.Duration{3 * time.Millisecond, time.Millisecond, 2 * time.Millisecond})
	var out strings.Builder
	if err := reportload.Write(&out, []reportload.Result{result}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for line, words := range map[int]string{1: "10 kept 0 0 2 none: 1, 200: 3 2.0 3.0 3", 4: "10 kept 4 0.5 2.0 6 0 0.00 generator 0.50 0"} {
		if got := strings.Join(strings.Fields(lines[line]), " "); !strings.HasPrefix(got, words) {
			t.Errorf("line %d is %q, want %q", line, got, words)
		}
	}
}

func ignoring(condition func() (bool, error)) wait.ConditionWithContextFunc {
	return func(context.Context) (bool, error) { return condition() }
}
