package datacache_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lockstep-project/lockstep/manifests/render"
	"github.com/lockstep-project/lockstep/simulator/inputs/sourcetree"
	"github.com/lockstep-project/lockstep/simulator/live/operators"
)

var (
	trainJobs = schema.GroupVersionResource{Group: "trainer.kubeflow.org", Version: "v1alpha1", Resource: "trainjobs"}
	setsOf    = schema.GroupVersionResource{
		Group:    "leaderworkerset.x-k8s.io",
		Version:  "v1",
		Resource: "leaderworkersets",
	}
	crds = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	}
)

// setController is LeaderWorkerSet's controller, which runs from the first test on that needs it.
type setController struct {
	operator operators.Operator
	binary   string
	runs     bool
}

// start starts it unless it runs.
func (s *setController) start(t *testing.T) {
	t.Helper()
	if s.runs {
		return
	}
	if err := s.operator.Start(context.WithoutCancel(t.Context()), shared, s.binary); err != nil {
		t.Fatal(err)
	}
	s.runs = true
}

// remove stops it, and removes the kind.
func (s *setController) remove(t *testing.T) {
	t.Helper()
	if !s.runs {
		return
	}
	if err := s.operator.Stop(t.Context(), shared); err != nil {
		t.Fatal(err)
	}
	s.runs = false
	name := setsOf.Resource + "." + setsOf.Group
	if err := shared.Dynamic.Resource(crds).Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, "the end of the kind LeaderWorkerSet", func() bool {
		_, err := shared.Client.Discovery().ServerResourcesForGroupVersion(setsOf.GroupVersion().String())
		return apierrors.IsNotFound(err)
	})
}

// within fails the test unless something holds in time.
func within(t *testing.T, patience time.Duration, what string, holds func() bool) {
	t.Helper()
	began := time.Now()
	for end := began.Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not after %v", what, time.Since(began))
		}
	}
	t.Logf("%s: after %.1f s", what, time.Since(began).Seconds())
}

// sample is the shipped TrainJob with a cache, under another name, with values of the initializer's variables and GPUs
// for each of its nodes.
func sample(t *testing.T, name string, gpus int, variables map[string]string) *unstructured.Unstructured {
	t.Helper()
	root, err := sourcetree.Root()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "manifests", "samples", "torch-with-cache.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := render.Objects(content)
	if err != nil {
		t.Fatal(err)
	}
	job := objects[0]
	job.SetName(name)
	job.SetNamespace(namespace)
	env, _, err := unstructured.NestedSlice(job.Object, "spec", "initializer", "dataset", "env")
	if err != nil {
		t.Fatal(err)
	}
	env = slices.DeleteFunc(env, func(of any) bool {
		variable, _ := of.(map[string]any)
		_, set := variables[fmt.Sprint(variable["name"])]
		return set
	})
	for variable, value := range variables {
		env = append(env, map[string]any{"name": variable, "value": value})
	}
	if err := unstructured.SetNestedSlice(job.Object, env, "spec", "initializer", "dataset", "env"); err != nil {
		t.Fatal(err)
	}
	limits := map[string]any{gpu: strconv.Itoa(gpus)}
	if err := unstructured.SetNestedMap(
		job.Object,
		limits,
		"spec",
		"trainer",
		"resourcesPerNode",
		"limits",
	); err != nil {
		t.Fatal(err)
	}
	return job
}

// small are the initializer's variables for the table of these tests, and for a cache that two processors carry.
func small() map[string]string {
	return map[string]string{
		"METADATA_LOC": table,
		"HEAD_CPU":     "100m", "HEAD_MEM": "256Mi", "WORKER_CPU": "100m", "WORKER_MEM": "256Mi",
		"READINESS_INITIAL_DELAY_SECONDS": "1", "READINESS_PERIOD_SECONDS": "1",
	}
}

// submit creates a TrainJob. It is deleted when the test ends.
func submit(t *testing.T, job *unstructured.Unstructured) {
	t.Helper()
	if err := shared.Apply(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			tell(t, job.GetName())
		}
		remove(context.WithoutCancel(t.Context()), t, job.GetName())
	})
}

// remove deletes a TrainJob as kubectl does, and waits until none of its pods and objects are there.
func remove(ctx context.Context, t *testing.T, job string) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	_ = shared.Dynamic.Resource(trainJobs).Namespace(namespace).
		Delete(ctx, job, metav1.DeleteOptions{PropagationPolicy: &background}) // the test may have deleted it
	within(t, 2*time.Minute, "nothing of "+job+" is left", func() bool { return len(left(ctx, t, job)) == 0 })
}

// left are the objects of a job and of its cache that are there.
func left(ctx context.Context, t *testing.T, job string) []string {
	t.Helper()
	var found []string
	add := func(kind, name string, err error) {
		if err == nil {
			found = append(found, kind+" "+name)
		}
	}
	core := shared.Client.CoreV1()
	_, err := shared.Dynamic.Resource(trainJobs).Namespace(namespace).Get(ctx, job, metav1.GetOptions{})
	add("TrainJob", job, err)
	_, err = shared.Dynamic.Resource(setsOf).Namespace(namespace).Get(ctx, job+"-cache", metav1.GetOptions{})
	add("LeaderWorkerSet", job+"-cache", err)
	_, err = core.ServiceAccounts(namespace).Get(ctx, job+"-cache", metav1.GetOptions{})
	add("ServiceAccount", job+"-cache", err)
	_, err = core.Services(namespace).Get(ctx, job+"-cache-service", metav1.GetOptions{})
	add("Service", job+"-cache-service", err)
	for _, pod := range podsOf(ctx, t, job) {
		add("Pod", pod.Name, nil)
	}
	return found
}

// podsOf are the pods of a job and of its cache.
func podsOf(ctx context.Context, t *testing.T, job string) []corev1.Pod {
	t.Helper()
	var found []corev1.Pod
	for _, selector := range []string{
		"jobset.sigs.k8s.io/jobset-name=" + job, "leaderworkerset.sigs.k8s.io/name=" + job + "-cache",
	} {
		list, err := shared.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, list.Items...)
	}
	return found
}

// step returns the pods of a job's step, or of its cache for "cache".
func step(t *testing.T, job, name string) []corev1.Pod {
	t.Helper()
	return slices.DeleteFunc(podsOf(t.Context(), t, job), func(pod corev1.Pod) bool { return stepOf(pod) != name })
}

func stepOf(pod corev1.Pod) string {
	if name := pod.Labels["jobset.sigs.k8s.io/replicatedjob-name"]; name != "" {
		return name
	}
	return "cache"
}

// words returns the output of a step's pods, in the order of their beginnings.
func words(t *testing.T, job, name string) string {
	t.Helper()
	pods := step(t, job, name)
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	var all strings.Builder
	for _, pod := range pods {
		text, err := shared.Client.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).
			DoRaw(context.WithoutCancel(t.Context()))
		if err != nil {
			fmt.Fprintf(&all, "%s: %v\n", pod.Name, err)
		}
		all.Write(text)
	}
	return all.String()
}

// status has the parts of a TrainJob's status that tests read.
type status struct {
	Conditions []metav1.Condition
	Scheduling struct{ Phase, Reason string }
}

func (s status) is(condition string) bool {
	return slices.ContainsFunc(s.Conditions, func(found metav1.Condition) bool {
		return found.Type == condition && found.Status == metav1.ConditionTrue
	})
}

func statusOf(t *testing.T, job string) status {
	t.Helper()
	object, err := shared.Dynamic.Resource(trainJobs).Namespace(namespace).Get(t.Context(), job, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(object.Object["status"])
	if err != nil {
		t.Fatal(err)
	}
	var found status
	if err := json.Unmarshal(raw, &found); err != nil {
		t.Fatal(err)
	}
	return found
}

// tell logs the state of a job whose test has failed.
func tell(t *testing.T, job string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	for _, pod := range podsOf(ctx, t, job) {
		t.Logf("%s %s on %q: %+v", pod.Name, pod.Status.Phase, pod.Spec.NodeName, pod.Status.ContainerStatuses)
		for _, previous := range []bool{true, false} {
			text, err := shared.Client.CoreV1().Pods(namespace).
				GetLogs(pod.Name, &corev1.PodLogOptions{Previous: previous}).DoRaw(ctx)
			if err == nil {
				t.Logf("%s prints (previous %t):\n%s", pod.Name, previous, text)
			}
		}
	}
	events, err := shared.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, event := range events.Items {
		if strings.HasPrefix(event.InvolvedObject.Name, job) {
			t.Logf("%s %s: %s: %s", event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, event.Message)
		}
	}
}
