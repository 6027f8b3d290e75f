package liverun_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/inputs/workload"
	"github.com/lockstep-project/lockstep/simulator/live/liverun"
	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// store is a Creator that stores its objects, or refuses all.
type store struct {
	objects []*unstructured.Unstructured
	refusal error
}

func (s *store) Create(_ context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	s.objects = append(s.objects, object)
	return object, s.refusal
}

func load(t *testing.T, yaml string) (workload.Workload, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "jobs.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	jobs, err := workload.Load([]string{file})
	if err != nil {
		t.Fatal(err)
	}
	return jobs, file
}

const job = `apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: train, annotations: {simulator.lockstep.dev/run-time: 20s}}
spec: {runtimeRef: {name: torch-distributed}}
`

func TestSubmit_PutsTheRunTimeOnThePods(t *testing.T) {
	jobs, _ := load(t, job)
	catalog, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	clk := clocktesting.NewFakeClock(time.Unix(1000, 0))
	var kept store
	submitted, err := liverun.Submit(t.Context(), &kept, jobs, catalog, clk)
	if err != nil {
		t.Fatal(err)
	}
	if len(submitted) != 1 || submitted[0].Framework != "torch" || !submitted[0].SubmittedAt.Equal(clk.Now()) {
		t.Errorf("submitted %+v", submitted)
	}
	patches, _, _ := unstructured.NestedSlice(kept.objects[0].Object, "spec", "runtimePatches")
	if len(patches) != 1 || patches[0].(map[string]any)["manager"] != workload.Manager {
		t.Errorf("patches %v, want one of %s", patches, workload.Manager)
	}
	if _, patched, _ := unstructured.NestedSlice(jobs.TrainJobs()[0].Object.Object, "spec", "runtimePatches"); patched {
		t.Error("the user's own object was changed")
	}
}

// A delayed job is submitted by the clock, and does not hold up those that are submitted at once.
func TestSubmit_WaitsForSubmitAfter(t *testing.T) {
	late := strings.Replace(
		strings.Replace(job, "name: train,", "name: late,", 1),
		"run-time: 20s",
		"submit-after: 8s",
		1,
	)
	jobs, _ := load(t, late+"---\n"+job)
	catalog, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Unix(1000, 0)
	clk := clocktesting.NewFakeClock(begin)
	done := make(chan []summary.JobObservation)
	go func() {
		submitted, err := liverun.Submit(t.Context(), &store{}, jobs, catalog, clk)
		if err != nil {
			t.Error(err)
		}
		done <- submitted
	}()
	for !clk.HasWaiters() {
		time.Sleep(time.Millisecond)
	}
	clk.Step(8 * time.Second)
	submitted := <-done
	if len(submitted) != 2 {
		t.Fatalf("%d jobs were submitted", len(submitted))
	}
	for i, want := range []struct {
		name  string
		after time.Duration
	}{{"train", 0}, {"late", 8 * time.Second}} {
		got := submitted[i]
		if name := got.TrainJob.GetName(); name != want.name || got.SubmittedAt.Sub(begin) != want.after {
			t.Errorf(
				"%s was submitted after %s, want %s after %s",
				name,
				got.SubmittedAt.Sub(begin),
				want.name,
				want.after,
			)
		}
	}
}

func TestSubmit_ServerRefusalIsBadInput(t *testing.T) {
	jobs, file := load(t, job)
	catalog, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	clk := clocktesting.NewFakeClock(time.Unix(1000, 0))
	_, err = liverun.Submit(t.Context(), &store{refusal: apierrors.NewBadRequest("unknown field")}, jobs, catalog, clk)
	want := file + ":1: the API server refuses TrainJob default/train: unknown field; correct the object"
	if !badinput.Is(err) || err.Error() != want {
		t.Errorf("refused:\n got %v\nwant %s", err, want)
	}
	_, err = liverun.Submit(t.Context(), &store{refusal: errors.New("connection reset")}, jobs, catalog, clk)
	if err == nil || badinput.Is(err) {
		t.Errorf("a fault is not the user's: %v", err)
	}
}

func TestCheck_RefusesUnknownRuntime(t *testing.T) {
	jobs, _ := load(t, strings.Replace(job, "torch-distributed", "torch", 1))
	catalog, err := liverun.ShippedRuntimes()
	if err != nil {
		t.Fatal(err)
	}
	if err := liverun.Check(jobs, catalog); !badinput.Is(err) || !strings.Contains(err.Error(), "torch-distributed") {
		t.Errorf("a runtime that is nowhere: %v", err)
	}
}

// trainJob is a stored TrainJob with one condition, or with none.
func trainJob(condition string) *unstructured.Unstructured {
	object := map[string]any{
		"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob",
		"metadata": map[string]any{"name": "train", "namespace": "default"},
	}
	if condition != "" {
		object["status"] = map[string]any{"conditions": []any{map[string]any{"type": condition, "status": "True"}}}
	}
	return &unstructured.Unstructured{Object: object}
}

func pod(node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "train-node-0-0", Namespace: "default", UID: "1",
			Labels: map[string]string{"jobset.sigs.k8s.io/jobset-name": "train"},
		},
		Spec: corev1.PodSpec{NodeName: node},
	}
}

// follow runs one job on a fake cluster, advancing the clock until the run ends or limit has passed.
func follow(
	t *testing.T,
	limit time.Duration,
	stored *unstructured.Unstructured,
	pods ...runtime.Object,
) (lines []string, ended bool) {
	t.Helper()
	kinds := map[schema.GroupVersionResource]string{
		{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}: "TrainJobList",
	}
	clk := clocktesting.NewFakeClock(time.Unix(1000, 0))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	said := make(chan string, 100)
	go func() {
		defer close(done)
		_, err := liverun.Run(ctx, []summary.JobObservation{{TrainJob: trainJob("")}}, liverun.Options{
			Client:  fake.NewClientset(pods...),
			Dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, stored),
			Clock:   clk, Patience: 30 * time.Second, Progress: func(line string) { said <- line },
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	for end := clk.Now().Add(limit); clk.Now().Before(end); {
		select {
		case <-done:
			stop()
			close(said)
			return slices.Collect(values(said)), true
		case <-time.After(time.Millisecond):
			if clk.HasWaiters() {
				clk.Step(200 * time.Millisecond)
			}
		}
	}
	stop()
	<-done
	close(said)
	return slices.Collect(values(said)), false
}

func values(lines <-chan string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for line := range lines {
			if !yield(line) {
				return
			}
		}
	}
}

func TestRun_EndsWithItsLastJob(t *testing.T) {
	lines, ended := follow(t, 10*time.Second, trainJob("Complete"), pod("a"))
	if !ended || !slices.Contains(lines, "train done") {
		t.Errorf("ended %t after %q", ended, lines)
	}
}

func TestRun_GivesUpUnplacedJobAfterPatience(t *testing.T) {
	if _, ended := follow(t, 25*time.Second, trainJob(""), pod("")); ended {
		t.Error("given up before the patience has passed")
	}
	if _, ended := follow(t, 60*time.Second, trainJob(""), pod("")); !ended {
		t.Error("not given up after twice the patience")
	}
}

func TestRun_NeverGivesUpRunningJob(t *testing.T) {
	if _, ended := follow(t, 5*time.Minute, trainJob(""), pod("a")); ended {
		t.Error("a job that runs long was given up")
	}
	// Half of a job without a gang, or a job's initializer: it will make room, or others will follow it.
	running := pod("a")
	running.Status.Phase = corev1.PodRunning
	waiting := pod("")
	waiting.Name, waiting.UID = "train-node-0-1", "2"
	if _, ended := follow(t, 2*time.Minute, trainJob(""), running, waiting); ended {
		t.Error("a job that runs in part was given up")
	}
}
