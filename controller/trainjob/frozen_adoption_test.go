package trainjob_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// earlier turns a settled fixture into that of a controller before FrozenTrainJobs: the job's copy of its runtime in a
// ConfigMap, created before the JobSet, and no frozen state.
func (w *fixture) earlier(spoil func(*corev1.ConfigMap)) {
	w.t.Helper()
	state, jobSet := w.state(), w.jobSet()
	config := w.copied()
	config.ResourceVersion, config.CreationTimestamp = "", metav1.NewTime(created())
	spoil(config)
	jobSet.CreationTimestamp = metav1.NewTime(created())
	for _, do := range []func() error{
		func() error { return w.Client.Delete(w.t.Context(), w.copied()) },
		func() error { return w.Client.Create(w.t.Context(), config) },
		func() error { return w.Client.Update(w.t.Context(), jobSet) },
		func() error { return w.Client.Delete(w.t.Context(), state) },
	} {
		if err := do(); err != nil {
			w.t.Fatal(err)
		}
	}
}

// Jobs of the previous version retain the runtime that they were queued with, and the decisions of that time.
func TestFrozenTrainJob_AdoptsWhatAnEarlierControllerKept(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	queued := w.jobSet()
	w.earlier(func(*corev1.ConfigMap) {})
	w.edit("example.com/torch:2")
	w.Options.Gang = false
	w.change(suspend(false))
	w.settle()
	if diff := cmp.Diff(queued.Spec.ReplicatedJobs, w.jobSet().Spec.ReplicatedJobs); diff != "" {
		t.Errorf("its pods changed (-queued +resumed):\n%s", diff)
	}
	state := w.state()
	if !strings.Contains(string(state.Spec.Runtime.Raw), "example.com/torch:1") || !state.Spec.Decisions.GangByDefault {
		t.Errorf(
			"the state has gangs by default %t and runtime %s",
			state.Spec.Decisions.GangByDefault,
			state.Spec.Runtime.Raw,
		)
	}
	if event := w.event(); event != "" {
		t.Errorf("event %q", event)
	}
	w.finish(created().Add(time.Hour))
	w.clock.SetTime(created().Add(2 * time.Hour))
	if w.settle(); len(w.left()) > 0 || len(w.states()) > 0 {
		t.Errorf("left after its end: %v and %d states", w.left(), len(w.states()))
	}
}

// A copy that a tenant can write is not adopted: the job takes the current runtime, and an Event gives the reason.
func TestFrozenTrainJob_AdoptsNoForgery(t *testing.T) {
	owner := func(change func(*metav1.OwnerReference)) func(*corev1.ConfigMap) {
		return func(c *corev1.ConfigMap) { change(&c.OwnerReferences[0]) }
	}
	for name, c := range map[string]struct {
		spoil func(*corev1.ConfigMap)
		want  string
	}{
		"of no one":               {func(c *corev1.ConfigMap) { c.OwnerReferences = nil }, "belongs to another object"},
		"of an earlier job":       {owner(func(o *metav1.OwnerReference) { o.UID = "earlier" }), "belongs to another object"},
		"of a kind that is none":  {owner(func(o *metav1.OwnerReference) { o.APIVersion, o.Kind = "evil.example/v1", "Nothing" }), "belongs to another object"},
		"of another name":         {owner(func(o *metav1.OwnerReference) { o.Name = "other" }), "belongs to another object"},
		"of an unknown version":   {owner(func(o *metav1.OwnerReference) { o.APIVersion = "trainer.kubeflow.org/v9" }), "belongs to another object"},
		"that can be changed":     {func(c *corev1.ConfigMap) { c.Immutable = nil }, "can be changed"},
		"younger than the JobSet": {func(c *corev1.ConfigMap) { c.CreationTimestamp = metav1.NewTime(created().Add(time.Second)) }, "younger"},
		"without the key":         {func(c *corev1.ConfigMap) { c.Data = nil }, "no key runtime"},
		"of another runtime": {func(c *corev1.ConfigMap) {
			c.Data["runtime"] = strings.Replace(c.Data["runtime"], "name: torch", "name: other", 1)
		}, "it is of ClusterTrainingRuntime other"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
			w.settle()
			w.earlier(func(config *corev1.ConfigMap) {
				config.Data["runtime"] = strings.ReplaceAll(
					config.Data["runtime"],
					"example.com/torch:1",
					"example.com/forged:1",
				)
				c.spoil(config)
			})
			w.settle()
			if got := w.image(); got != "example.com/torch:1" {
				t.Errorf("image %s, want that of the administrator's runtime", got)
			}
			if event := w.event(); !strings.Contains(event, "RuntimeCopyRefused") || !strings.Contains(event, c.want) {
				t.Errorf("event %q, want one that says %q", event, c.want)
			}
		})
	}
}

// Before a job has a JobSet it was not rendered, and there is nothing to adopt: any copy is a forgery.
func TestFrozenTrainJob_AdoptsNothingBeforeTheJobSet(t *testing.T) {
	forged := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "train-runtime-snapshot", OwnerReferences: plan.Owners(trainJob()),
			CreationTimestamp: metav1.NewTime(created()),
		},
		Immutable: new(true),
		Data: map[string]string{
			"runtime": `{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"ClusterTrainingRuntime",` +
				`"metadata":{"name":"torch"},"spec":{"template":{"spec":{"replicatedJobs":[{"name":"node","template":{"spec":{"template":` +
				`{"spec":{"hostPID":true,"containers":[{"name":"node","image":"example.com/forged:1"}]}}}}}]}}}}`,
		},
	}
	w := newFixture(t, gang(), torch(), trainJob(), forged)
	w.settle()
	if pod := w.jobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Spec; pod.HostPID ||
		w.image() != "example.com/torch:1" {
		t.Errorf("the pods are of the forged runtime: %+v", pod)
	}
}
