package loadtest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/bench/loadtest"
)

const metrics = `# HELP rest_client_requests_total Number of HTTP requests
rest_client_requests_total{code="200",host="127.0.0.1:1",method="GET"} 7
rest_client_requests_total{code="404",host="127.0.0.1:1",method="GET"} 3
rest_client_requests_total{code="201",host="127.0.0.1:1",method="PATCH"} 1e+01
controller_runtime_reconcile_time_seconds_bucket{controller="trainjob",le="0.005"} 2
controller_runtime_reconcile_time_seconds_count{controller="trainjob"} 5
controller_runtime_reconcile_time_seconds_sum{controller="trainjob"} 0.25
controller_runtime_reconcile_time_seconds_count{controller="other"} 99
lockstep_status_server_writes_total{result="written"} 8
lockstep_status_server_writes_total{result="conflict"} 1
process_cpu_seconds_total 1.5
process_resident_memory_bytes 6.4e+07
`

func TestReadUsage_FromMetrics(t *testing.T) {
	got, err := loadtest.ReadUsage(metrics)
	want := loadtest.Usage{
		Calls: map[string]float64{"GET": 10, "PATCH": 10}, Reports: map[string]float64{"written": 8, "conflict": 1},
		Reconciles: 5, Seconds: 0.25, CPU: 1.5, Memory: 6.4e7,
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("usage (-want +got):\n%s%v", diff, err)
	}
	earlier := loadtest.Usage{Calls: map[string]float64{"GET": 4}, Reconciles: 1, Seconds: 0.05, CPU: 1, Memory: 1}
	spent := got.Since(earlier)
	if spent.Total() != 16 || spent.Reconciles != 4 || spent.CPU != 0.5 || spent.Memory != 6.4e7 {
		t.Errorf("since %+v: %+v", earlier, spent)
	}
	for _, text := range []string{"", "# nothing\n", "process_cpu_seconds_total much\n"} {
		if _, err := loadtest.ReadUsage(text); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v, want one line", text, err)
		}
	}
}

func TestScrape_RefusalIsAnError(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "Unauthorized", http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	if _, err := loadtest.Scrape(
		server.Client(),
		server.URL,
	)(
		t.Context(),
	); err == nil ||
		!strings.Contains(err.Error(), "401") {
		t.Errorf("error %v, want 401", err)
	}
}

// controllers plays the TrainJob and the JobSet controller on a fake cluster: a TrainJob gets a JobSet, and a JobSet
// that is not suspended a pod.
type controllers struct {
	mu       sync.Mutex
	dynamic  *dynamicfake.FakeDynamicClient
	metadata *metadatafake.FakeMetadataClient
	usage    loadtest.Usage
	created  map[string]bool
}

func newControllers(t *testing.T) *controllers {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	pods := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(pods); err != nil {
		t.Fatal(err)
	}
	c := &controllers{
		dynamic: dynamicfake.NewSimpleDynamicClientWithCustomListKinds(scheme, map[schema.GroupVersionResource]string{
			trainJobs():                             "TrainJobList",
			jobSets():                               "JobSetList",
			{Version: "v1", Resource: "namespaces"}: "NamespaceList",
		}),
		metadata: metadatafake.NewSimpleMetadataClient(pods),
		created:  map[string]bool{},
	}
	// Reactors run inside the fake client's lock, so the consequences of a write are carried out after it.
	c.dynamic.PrependReactor("*", "trainjobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		switch action := action.(type) {
		case clienttesting.CreateAction:
			job := action.GetObject().(*unstructured.Unstructured)
			go c.makeJobSet(t, job)
			return true, job, nil
		case clienttesting.PatchAction:
			go c.resume(t, action.GetName())
			return true, &unstructured.Unstructured{}, nil
		}
		return false, nil, nil
	})
	return c
}

func trainJobs() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}
}

func jobSets() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "jobset.x-k8s.io", Version: "v1alpha2", Resource: "jobsets"}
}

func jobSet(namespace, name string, suspend bool) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet",
		"metadata": map[string]any{"name": name, "namespace": namespace}, "spec": map[string]any{"suspend": suspend},
	}}
}

func (c *controllers) makeJobSet(t *testing.T, job *unstructured.Unstructured) {
	t.Helper()
	name, namespace := job.GetName(), job.GetNamespace()
	suspend, _, _ := unstructured.NestedBool(job.Object, "spec", "suspend")
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.created[namespace+"/"+name] {
		t.Errorf("TrainJob %s/%s was created twice", namespace, name)
	}
	c.created[namespace+"/"+name] = true
	c.used()
	if err := c.dynamic.Tracker().Create(jobSets(), jobSet(namespace, name, suspend), namespace); err != nil {
		t.Error(err)
	}
	if !suspend {
		c.makePod(t, name)
	}
}

func (c *controllers) resume(t *testing.T, name string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used()
	if err := c.dynamic.Tracker().Update(jobSets(), jobSet("default", name, false), "default"); err != nil {
		t.Error(err)
	}
	c.makePod(t, name)
}

func (c *controllers) makePod(t *testing.T, name string) {
	t.Helper()
	pod := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{
			APIVersion: "v1",
			Kind:       "Pod",
		},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
	}
	if err := c.metadata.Tracker().Create(corev1.SchemeGroupVersion.WithResource("pods"), pod, "default"); err != nil {
		t.Error(err)
	}
}

// used is one reconciliation, two calls and 3 ms of CPU.
func (c *controllers) used() {
	c.usage.Reconciles++
	c.usage.CPU += 0.003
}

func (c *controllers) field() loadtest.Field {
	return loadtest.Field{
		Dynamic: c.dynamic, Metadata: c.metadata, Clock: clock.RealClock{}, Progress: func(string) {},
		Pause: 100 * time.Millisecond,
		Usage: func(context.Context) (loadtest.Usage, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			usage := c.usage
			usage.Calls = map[string]float64{"PATCH": 2 * usage.Reconciles}
			return usage, nil
		},
	}
}

func TestRun_FollowsJobsToTheirPods(t *testing.T) {
	c := newControllers(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	order := loadtest.Order{Namespace: "default", Count: 50, Gang: "on", Suspend: true}
	result, err := c.field().Run(ctx, order)
	if err != nil {
		t.Fatal(err)
	}
	if result.JobSets <= 0 || result.Resumed <= 0 || result.ResumedPods <= 0 || result.Pods != 0 {
		t.Errorf("times %+v", result)
	}
	if result.Making.Total() != 100 || result.Resuming == nil || result.Resuming.Total() != 100 {
		t.Errorf("calls: making %+v, resuming %+v, want 100 each", result.Making, result.Resuming)
	}
	var out strings.Builder
	if err := (loadtest.Report{Commit: "c", Rushes: []loadtest.Result{result}}).Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"suspended", "resumed", "2.00"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not say %s:\n%s", want, out.String())
		}
	}
}

// TestRun_UnfinishedRushIsAnError checks that a controller which does not keep up ends in an error, not in a wrong
// number.
func TestRun_UnfinishedRushIsAnError(t *testing.T) {
	c := newControllers(t)
	c.dynamic.PrependReactor("create", "trainjobs", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return true, action.(clienttesting.CreateAction).GetObject(), nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	_, err := c.field().Run(ctx, loadtest.Order{Namespace: "default", Count: 3, Gang: "off"})
	if err == nil || !strings.Contains(err.Error(), "0 of 3 JobSets") {
		t.Errorf("error %v, want how many JobSets there are", err)
	}
}

// A restart is measured from its beginning, with the usage of the next process alone.
func TestRestarts_MeasureTheNextProcess(t *testing.T) {
	c := newControllers(t)
	field := c.field()
	field.Replace = func(context.Context) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.usage = loadtest.Usage{Reconciles: float64(len(c.created)), CPU: 0.5}
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	order := loadtest.Order{Namespace: "default", Gang: "on", Suspend: true}
	restarts, err := field.Restarts(ctx, order, []int{5, 20})
	// These controllers call twice for each job, the new one included: all restarts are measured, and fail.
	for _, want := range []string{"with 5 jobs it called the API server 2.40 times", "with 20 jobs it called the API server 2.10 times"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("judged %v, want %s", err, want)
		}
	}
	if len(restarts) != 2 {
		t.Fatalf("%d restarts are measured, want 2", len(restarts))
	}
	if len(c.created) != 21 {
		t.Errorf("%d jobs were made, want 20 and one more", len(c.created))
	}
	for i, jobs := range []int{5, 20} {
		got := restarts[i]
		if got.Jobs != jobs || got.NewJob < got.Ready || got.Seen < got.Ready ||
			got.Usage.Reconciles != float64(jobs+1) {
			t.Errorf("with %d jobs: %+v", jobs, got)
		}
	}
	var out strings.Builder
	if err := (loadtest.Report{Commit: "c", Restarts: restarts}).Write(
		&out,
	); err != nil ||
		!strings.Contains(out.String(), "2.100") {
		t.Errorf("the table does not say 2.100 (%v):\n%s", err, out.String())
	}
}

// The benchmark fails if a restart takes too much: the error lists all numbers that are too high.
func TestRestart_Judge(t *testing.T) {
	t.Parallel()
	const slow, chatty = "ready after 10.1 s; at most 10", "called the API server 1.10 times for each; at most 1"
	for name, c := range map[string]struct {
		ready, calls float64
		want         []string
	}{
		"as measured":     {ready: 9.0, calls: 33},
		"at both bounds":  {ready: 10, calls: 10000},
		"slow":            {ready: 10.1, calls: 33, want: []string{slow}},
		"a call for each": {ready: 1, calls: 11000, want: []string{chatty}},
		"slow and chatty": {ready: 10.1, calls: 11000, want: []string{slow, chatty}},
	} {
		err := loadtest.Restart{
			Jobs:  10000,
			Ready: c.ready,
			Usage: loadtest.Usage{Calls: map[string]float64{"GET": c.calls / 2, "PATCH": c.calls / 2}},
		}.Judge()
		if (err != nil) != (len(c.want) > 0) {
			t.Errorf("%s: judged %v, want %q", name, err, c.want)
		}
		for _, want := range c.want {
			if err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s: judged %v, want %q", name, err, want)
			}
		}
	}
}

func TestCrowd_Judge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		delays []float64
		want   string
	}{
		{[]float64{0.3, 5, 0.2}, ""},
		{[]float64{0.3, 5.1, 0.2}, "behind 10000 jobs a JobSet was created after 5.1 s; at most 5"},
	} {
		err := loadtest.Crowd{Jobs: 10000, Delays: c.delays}.Judge()
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: judged %v, want %q", c.delays, err, c.want)
		}
	}
}

// Each neighbor is served behind the crowd in a namespace of its own, and the part of the crowd that was ahead is
// reported.
func TestBehind_ServesNeighborsAfterTheCrowd(t *testing.T) {
	c := newControllers(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	crowd, err := c.field().Behind(ctx, loadtest.Order{Namespace: "default", Count: 50, Gang: "on", Suspend: true}, 3)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.created) != 53 || !c.created["neighbor-2/rush-00000"] {
		t.Errorf("%d jobs were made, want 50 and 3 in namespaces of their own", len(c.created))
	}
	if len(crowd.Ahead) != 3 || len(crowd.Delays) != 3 || crowd.Worst() <= 0 {
		t.Errorf("%+v, want how long each of 3 waited", crowd)
	}
	var out strings.Builder
	if err := (loadtest.Report{Commit: "c", Crowds: []loadtest.Crowd{{Jobs: 9, Ahead: []int{8}, Delays: []float64{1.5}}}}).Write(
		&out,
	); err != nil ||
		!strings.Contains(out.String(), "[1.50]") {
		t.Errorf("the table does not say 1.50 (%v):\n%s", err, out.String())
	}
}

func TestCosts_GrowTheCluster(t *testing.T) {
	c := newControllers(t)
	touched := 0
	c.dynamic.PrependReactor("patch", "jobsets", func(clienttesting.Action) (bool, runtime.Object, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		touched++
		c.used()
		return true, &unstructured.Unstructured{}, nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	costs, err := c.field().
		Costs(ctx, loadtest.Order{Namespace: "default", Gang: "on", Suspend: true}, []int{5, 20}, 5, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(c.created) != 20 || touched != 20 {
		t.Errorf("%d jobs were made and %d times one was touched, want 20 and 20", len(c.created), touched)
	}
	for i, jobs := range []int{5, 20} {
		if costs[i].Jobs != jobs || costs[i].Usage.Reconciles != 10 || costs[i].CPUMillis() < 2.99 ||
			costs[i].CPUMillis() > 3.01 {
			t.Errorf("with %d jobs: %+v (%v ms), want 10 reconciles of 3 ms", jobs, costs[i], costs[i].CPUMillis())
		}
	}
}
