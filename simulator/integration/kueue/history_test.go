package kueue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

const (
	kueueManager = "kueue.x-k8s.io/manager"
	queueLabel   = "kueue.x-k8s.io/queue-name"
)

var (
	trainJobs = schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}
	workloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}
	queues    = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "clusterqueues"}
)

// state is one version of a TrainJob, as the API server stored it.
type state struct {
	name   string
	at     time.Duration // since the recording began
	object map[string]any
}

func (s state) suspended() bool {
	suspended, _, _ := unstructured.NestedBool(s.object, "spec", "suspend")
	return suspended
}

// ended is Complete, Failed or empty.
func (s state) ended() string {
	conditions, _, _ := unstructured.NestedSlice(s.object, "status", "conditions")
	for _, entry := range conditions {
		condition := entry.(map[string]any)
		kind := condition["type"].(string)
		if condition["status"] == "True" && (kind == "Complete" || kind == "Failed") {
			return kind
		}
	}
	return ""
}

// active is the number of Jobs with running pods; -1 without a status.
func (s state) active() int64 {
	statuses, reported, _ := unstructured.NestedSlice(s.object, "status", "jobsStatus")
	if !reported {
		return -1
	}
	var sum int64
	for _, entry := range statuses {
		active, _, _ := unstructured.NestedInt64(entry.(map[string]any), "active")
		sum += active
	}
	return sum
}

// patch is the runtime patch of a manager.
func (s state) patch(manager string) (map[string]any, bool) {
	patches, _, _ := unstructured.NestedSlice(s.object, "spec", "runtimePatches")
	at := slices.IndexFunc(patches, func(patch any) bool { return patch.(map[string]any)["manager"] == manager })
	if at < 0 {
		return nil, false
	}
	return patches[at].(map[string]any), true
}

// admits reports whether Kueue's patch says anything.
func (s state) admits() bool {
	patch, _ := s.patch(kueueManager)
	jobs, _, _ := unstructured.NestedSlice(patch, "trainingRuntimeSpec", "template", "spec", "replicatedJobs")
	return len(jobs) > 0
}

// admitted reports whether the job may run, by Kueue's patch and its word.
func (s state) admitted() bool { return !s.suspended() && s.admits() }

// quiet reports whether the job is suspended and nothing of it runs any more.
func (s state) quiet() bool { return s.suspended() && s.active() == 0 }

// withdrawn reports whether Kueue has taken its admission back as well: the request after which it frees the quota.
func (s state) withdrawn() bool { return s.quiet() && !s.admits() }

func (s state) complete() bool { return s.ended() == "Complete" }

func (s state) String() string {
	patches, _, _ := unstructured.NestedSlice(s.object, "spec", "runtimePatches")
	managers := make([]string, len(patches))
	for i, patch := range patches {
		managers[i] = patch.(map[string]any)["manager"].(string)
	}
	kueues := "empty"
	if s.admits() {
		kueues = "filled"
	}
	line := fmt.Sprintf("%6.2fs %-7s suspend=%-5t kueue's patch %-6s active=%-2d patches of %s", s.at.Seconds(), s.name,
		s.suspended(), kueues, s.active(), strings.Join(managers, ", "))
	if end := s.ended(); end != "" {
		line += " " + strings.ToUpper(end)
	}
	return line
}

// history is every version of every TrainJob of a namespace, in the order in which they were stored.
type history struct {
	mu     sync.Mutex
	states []state
}

// record watches the TrainJobs of a namespace until the test ends, and writes its transcript. Jobs that a test leaves
// are deleted: they would hold nodes that the next one counts on.
func record(t *testing.T, namespace string) *history {
	t.Helper()
	t.Cleanup(func() { clearJobs(t, namespace) })
	return recordOn(t, shared.Dynamic, namespace)
}

// recordOn is record for another cluster than the shared one.
func recordOn(t *testing.T, client dynamic.Interface, namespace string) *history {
	t.Helper()
	h := &history{}
	begin := time.Now()
	watch, err := client.Resource(trainJobs).Namespace(namespace).Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	t.Cleanup(func() {
		watch.Stop()
		<-stopped // nothing may be logged after the test
	})
	go func() {
		defer close(stopped)
		for event := range watch.ResultChan() {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == "DELETED" {
				continue
			}
			s := state{name: object.GetName(), at: time.Since(begin), object: object.Object}
			t.Log(s)
			h.mu.Lock()
			h.states = append(h.states, s)
			h.mu.Unlock()
		}
	}()
	return h
}

// clearJobs deletes the TrainJobs of a namespace, and waits until their pods are deleted.
func clearJobs(t *testing.T, namespace string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 30*time.Second)
	defer cancel()
	err := shared.Dynamic.Resource(trainJobs).
		Namespace(namespace).
		DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	if err != nil {
		t.Error(err)
		return
	}
	gone := func(ctx context.Context) (bool, error) {
		pods, err := shared.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		return err == nil && len(pods.Items) == 0, nil
	}
	if err := wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, gone); err != nil {
		t.Errorf("pods of namespace %s stay: %v", namespace, err)
	}
}

// next waits for the first version of a job, from a place in the history on, for which something holds, and returns the
// place after it.
func (h *history) next(t *testing.T, from int, name, what string, holds func(state) bool) (state, int) {
	t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for ; time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		h.mu.Lock()
		states := h.states
		h.mu.Unlock()
		for i := from; i < len(states); i++ {
			if states[i].name == name && holds(states[i]) {
				t.Logf("%6.2fs ---- %s: %s", states[i].at.Seconds(), name, what)
				return states[i], i + 1
			}
		}
	}
	t.Fatalf("%s never was: %s", name, what)
	return state{}, 0
}

// never fails the test if a job was something in a stretch of the history.
func (h *history) never(t *testing.T, from, to int, name, what string, was func(state) bool) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.states[from:to] {
		if s.name == name && was(s) {
			t.Errorf("%s was %s too early: %v", name, what, s)
		}
	}
}

// show writes the runtime patches of a version of a job, as YAML.
func show(t *testing.T, s state) {
	t.Helper()
	patches, _, _ := unstructured.NestedSlice(s.object, "spec", "runtimePatches")
	content, err := yaml.Marshal(map[string]any{"runtimePatches": patches})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("TrainJob %s, suspend=%t:\n%s", s.name, s.suspended(), content)
}
