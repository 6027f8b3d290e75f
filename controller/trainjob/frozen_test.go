package trainjob_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// states are the FrozenTrainJobs that there are.
func (w *world) states() []statev1alpha1.FrozenTrainJob {
	w.t.Helper()
	var list statev1alpha1.FrozenTrainJobList
	if err := w.Client.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// state is the only one.
func (w *world) state() *statev1alpha1.FrozenTrainJob {
	w.t.Helper()
	states := w.states()
	if len(states) != 1 {
		w.t.Fatalf("%d FrozenTrainJobs, want 1", len(states))
	}
	return &states[0]
}

// edit changes the runtime as its administrator would.
func (w *world) edit(image string) {
	w.t.Helper()
	rt := torch()
	if err := w.Client.Get(w.t.Context(), client.ObjectKeyFromObject(rt), rt); err != nil {
		w.t.Fatal(err)
	}
	rt.Spec.Template.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Image = image
	if err := w.Client.Update(w.t.Context(), rt); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) image() string {
	w.t.Helper()
	return w.jobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Image
}

func TestFrozenTrainJob_HoldsRuntimeAndDecisions(t *testing.T) {
	w := newWorld(t, plan.Options{Gang: true}, torch(), trainJob(suspend(true)))
	authority := "anybody"
	w.reporting(&authority)
	w.settle()
	state := w.state()
	if state.Namespace != system || state.Name != "train-uid" {
		t.Errorf("it is %s/%s, want it in the controller's namespace under the job's UID", state.Namespace, state.Name)
	}
	job := statev1alpha1.TrainJobReference{Namespace: namespace, Name: "train", UID: "train-uid"}
	decided := statev1alpha1.Decisions{
		GangByDefault: true, StatusServer: &statev1alpha1.StatusServerReference{URL: statusURL},
	}
	if diff := cmp.Diff(job, state.Spec.TrainJob) + cmp.Diff(decided, state.Spec.Decisions); diff != "" {
		t.Errorf("the state (-want +got):\n%s", diff)
	}
	for _, want := range []string{`"kind":"ClusterTrainingRuntime"`, `"name":"torch"`, `"apiVersion":"trainer.kubeflow.org/v1alpha1"`} {
		if !strings.Contains(string(state.Spec.Runtime.Raw), want) {
			t.Errorf("the runtime has no %s:\n%s", want, state.Spec.Runtime.Raw)
		}
	}
	if state.Spec.Rendering.Renderer != plan.Renderer || len(state.Spec.Rendering.Digest) != 64 {
		t.Errorf("the rendering is %+v", state.Spec.Rendering)
	}
}

func TestFrozenTrainJob_RuntimeIsThatOfTheFirstRendering(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	w.edit("example.com/torch:2")
	w.change(suspend(false))
	w.settle()
	if got := w.image(); got != "example.com/torch:1" {
		t.Errorf("image %s after the runtime was edited, want the one that the job started with", got)
	}
}

// A queue full of jobs must start after the administrator changed the default: their JobSets have the pods of the one before.
func TestFrozenTrainJob_GangDefaultIsThatOfTheFirstRendering(t *testing.T) {
	for _, first := range []bool{true, false} {
		w := newWorld(t, plan.Options{Gang: first}, torch(), trainJob(suspend(true)))
		w.settle()
		queued := w.jobSet()
		w.Options.Gang = !first
		w.change(suspend(false))
		w.settle()
		if diff := cmp.Diff(queued.Spec.ReplicatedJobs, w.jobSet().Spec.ReplicatedJobs); diff != "" {
			t.Errorf("gangs by default %t: its pods changed (-queued +resumed):\n%s", first, diff)
		}
		if got := w.podGroup() != nil; got != first {
			t.Errorf("gangs by default %t: PodGroup %t", first, got)
		}
	}
}

func TestFrozenTrainJob_JobOutlivesItsRuntime(t *testing.T) {
	rt := torch()
	w := newWorld(t, gang(), rt, trainJob())
	w.settle()
	if err := w.Client.Delete(t.Context(), rt); err != nil {
		t.Fatal(err)
	}
	for _, suspended := range []bool{true, false} {
		w.change(suspend(suspended))
		w.settle()
		if got := *w.jobSet().Spec.Suspend; got != suspended {
			t.Errorf("JobSet suspended %t, want %t", got, suspended)
		}
	}
	if event := w.event(); event != "" {
		t.Errorf("event %q about a runtime that the job needs no more", event)
	}
}

// copied is the ConfigMap that shows the frozen runtime.
func (w *world) copied() *corev1.ConfigMap {
	w.t.Helper()
	config := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: namespace, Name: "train-runtime-snapshot"}
	if err := w.Client.Get(w.t.Context(), key, config); err != nil {
		w.t.Fatal(err)
	}
	return config
}

// Users read the copy, and an earlier version of the controller continues with it: it equals that version's own copy.
func TestFrozenTrainJob_HasACopyForUsers(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	config := w.copied()
	for _, want := range []string{"kind: ClusterTrainingRuntime\n", "  name: torch\n", "apiVersion: trainer.kubeflow.org/v1alpha1\n"} {
		if !strings.Contains(config.Data["runtime"], want) {
			t.Errorf("the copy has no %q:\n%s", want, config.Data["runtime"])
		}
	}
	if !ownership.Controls(w.job(), plan.TrainJobKind(), config) || config.Immutable == nil || !*config.Immutable {
		t.Errorf("the copy is owned by %v and immutable %v", config.OwnerReferences, config.Immutable)
	}
	if err := w.Client.Delete(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	w.edit("example.com/torch:2")
	w.change(suspend(false))
	w.settle()
	if got := w.image(); got != "example.com/torch:1" {
		t.Errorf("image %s after somebody deleted the copy, want the frozen one", got)
	}
}

// A foreign ConfigMap under the name of the copy stays, and the job starts without a copy.
func TestFrozenTrainJob_NeedsNoCopy(t *testing.T) {
	theirs := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train-runtime-snapshot"},
		Data:       map[string]string{"mine": "yes"},
	}
	w := newWorld(t, gang(), torch(), trainJob(), theirs)
	w.settle()
	if w.jobSet() == nil || w.copied().Data["mine"] != "yes" {
		t.Errorf("JobSet %t; the ConfigMap has %v", w.jobSet() != nil, w.copied().Data)
	}
}

// State that was lost, with the controller's namespace for example, is recreated from the copy.
func TestFrozenTrainJob_LostIsMadeAnewByItsCopy(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	w.edit("example.com/torch:2")
	if err := w.Client.Delete(t.Context(), w.state()); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got, event := w.image(), w.event(); got != "example.com/torch:1" || event != "" {
		t.Errorf("image %s, want the frozen one, and no Event: %s", got, event)
	}
}

func TestFrozenTrainJob_WithoutItAndItsCopyTheRuntimeAsItIsCounts(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	w.edit("example.com/torch:2")
	for _, gone := range []client.Object{w.state(), w.copied()} {
		if err := w.Client.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	w.settle()
	if got := w.image(); got != "example.com/torch:2" {
		t.Errorf("image %s, want that of the runtime as it is", got)
	}
	if !strings.Contains(string(w.state().Spec.Runtime.Raw), "example.com/torch:2") {
		t.Error("the new state is not of the runtime as it is")
	}
}

// A runtime that cannot be rendered is not frozen: its administrator will mend it.
func TestFrozenTrainJob_FaultyRuntimeIsNotFrozen(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(func(job *trainerv1alpha1.TrainJob) {
		job.Spec.Initializer = &trainerv1alpha1.Initializer{Dataset: &trainerv1alpha1.DatasetInitializer{}}
	}))
	if _, err := w.reconcile(); err == nil {
		t.Fatal("a runtime without the initializer that the job wants was not refused")
	}
	if diff := cmp.Diff([]string{"patch TrainJob status"}, w.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if said := w.job().Status.Scheduling; said.Phase != trainerv1alpha1.PhaseBlocked || said.Reason == "" {
		t.Errorf("the job says %+v", said)
	}
}

// The state records the last applied rendering, so a patch of a queued job shows there, and its suspension does not.
func TestFrozenTrainJob_RecordsTheRendering(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob())
	w.settle()
	first := w.state().Spec.Rendering
	w.change(suspend(true))
	w.settle()
	if diff := cmp.Diff(first, w.state().Spec.Rendering); diff != "" {
		t.Errorf("suspended (-before +after):\n%s", diff)
	}
	w.change(func(job *trainerv1alpha1.TrainJob) {
		job.Spec.Trainer = &trainerv1alpha1.Trainer{Image: new("example.com/torch:3")}
	})
	w.settle()
	if w.state().Spec.Rendering == first {
		t.Error("a JobSet with another image is not recorded")
	}
	if w.settle(); slices.Contains(w.writes, "patch FrozenTrainJob") {
		t.Errorf("writes %v when nothing changed", w.writes)
	}
}

// No owner reference crosses namespaces, so the controller itself deletes the state of deleted jobs: of all that had
// the name, and of an earlier job when there is another one of its name.
func TestFrozenTrainJob_GoesWithItsJob(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob())
	w.start()
	earlier := w.state().DeepCopy()
	earlier.ResourceVersion, earlier.Name, earlier.Spec.TrainJob.UID = "", "earlier-uid", "earlier-uid"
	other := earlier.DeepCopy()
	other.Name, other.Spec.TrainJob = "other-uid", statev1alpha1.TrainJobReference{
		Namespace: "team-b", Name: "train", UID: "other-uid",
	}
	for _, state := range []*statev1alpha1.FrozenTrainJob{earlier, other} {
		if err := w.Client.Create(t.Context(), state); err != nil {
			t.Fatal(err)
		}
	}
	w.settle()
	if diff := cmp.Diff([]string{"delete FrozenTrainJob earlier-uid"}, w.writes); diff != "" {
		t.Errorf("with another job of the name (-want +got):\n%s", diff)
	}
	if err := w.Client.Delete(t.Context(), w.job()); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if states := w.states(); len(states) != 1 || states[0].Name != "other-uid" {
		t.Errorf("%d states are left, want only that of another namespace's job", len(states))
	}
}

// A cache that was filled before the job was created does not show it; its state must not be deleted.
func TestFrozenTrainJob_StaysWhileTheCacheIsBehind(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob())
	w.settle()
	behind := interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			if _, isJob := into.(*trainerv1alpha1.TrainJob); isJob {
				key.Name = "not-seen-yet"
			}
			return c.Get(ctx, key, into, opts...)
		},
	})
	w.Client = behind
	w.settle()
	if len(w.states()) != 1 {
		t.Error("the state of a job that exists was deleted")
	}
}

// A cache that has no state yet is not believed: the job would be rendered with the runtime of today.
func TestFrozenTrainJob_IsReadPastACacheThatHasNone(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	w.edit("example.com/torch:2")
	behind := interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
			if _, isState := into.(*statev1alpha1.FrozenTrainJob); isState {
				key.Name = "not-seen-yet"
			}
			return c.Get(ctx, key, into, opts...)
		},
	})
	w.Resolver = resolve.New(behind, w.Live, system)
	w.change(suspend(false))
	w.settle()
	if got := w.image(); got != "example.com/torch:1" {
		t.Errorf("image %s, want the frozen one", got)
	}
}

func TestFrozenTrainJob_OneThatCannotBeUsedIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		content, want string
	}{
		"no object": {`[]`, "decoding"},
		"another runtime": {
			`{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"ClusterTrainingRuntime","metadata":{"name":"other"}}`,
			"it is of ClusterTrainingRuntime other, and the job refers to ClusterTrainingRuntime torch",
		},
		"another kind": {
			`{"apiVersion":"trainer.kubeflow.org/v1alpha1","kind":"TrainingRuntime","metadata":{"name":"torch"}}`,
			"it is of TrainingRuntime torch",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, gang(), torch(), trainJob(suspend(true)), &statev1alpha1.FrozenTrainJob{
				ObjectMeta: metav1.ObjectMeta{Namespace: system, Name: "train-uid"},
				Spec: statev1alpha1.FrozenTrainJobSpec{
					TrainJob: statev1alpha1.TrainJobReference{Namespace: namespace, Name: "train", UID: "train-uid"},
					Runtime:  runtime.RawExtension{Raw: []byte(c.content)},
				},
			})
			_, err := w.reconcile()
			if !errors.Is(err, resolve.ErrFrozen) || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), "delete FrozenTrainJob lockstep-system/train-uid") {
				t.Errorf("error %v, want one with %q that says how to mend it", err, c.want)
			}
			if w.jobSet() != nil {
				t.Error("a JobSet was made of it")
			}
		})
	}
}

// earlier turns a settled world into that of a controller before FrozenTrainJobs: the job's copy of its runtime in a
// ConfigMap, created before the JobSet, and no frozen state.
func (w *world) earlier(spoil func(*corev1.ConfigMap)) {
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
	w := newWorld(t, gang(), torch(), trainJob(suspend(true)))
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
			w := newWorld(t, gang(), torch(), trainJob(suspend(true)))
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
	w := newWorld(t, gang(), torch(), trainJob(), forged)
	w.settle()
	if pod := w.jobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Spec; pod.HostPID ||
		w.image() != "example.com/torch:1" {
		t.Errorf("the pods are of the forged runtime: %+v", pod)
	}
}

// A JobSet that claims to be the job's by its UID alone is a foreign one.
func TestReconcile_LeavesAForeignJobSetAlone(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob())
	w.settle()
	jobSet := w.jobSet()
	jobSet.OwnerReferences[0].APIVersion, jobSet.OwnerReferences[0].Kind = "evil.example/v1", "Nothing"
	if err := w.Client.Update(t.Context(), jobSet); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(); err == nil || !strings.Contains(err.Error(), "belongs to another object") {
		t.Errorf("error %v, want that it is somebody else's", err)
	}
}
