package trainjob_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	statev1alpha1 "github.com/lockstep-project/lockstep/controller/api/state/v1alpha1"
	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// states are the FrozenTrainJobs that there are.
func (w *fixture) states() []statev1alpha1.FrozenTrainJob {
	w.t.Helper()
	var list statev1alpha1.FrozenTrainJobList
	if err := w.Client.List(w.t.Context(), &list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}

// state is the only one.
func (w *fixture) state() *statev1alpha1.FrozenTrainJob {
	w.t.Helper()
	states := w.states()
	if len(states) != 1 {
		w.t.Fatalf("%d FrozenTrainJobs, want 1", len(states))
	}
	return &states[0]
}

// edit changes the runtime as its administrator would.
func (w *fixture) edit(image string) {
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

func (w *fixture) image() string {
	w.t.Helper()
	return w.jobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Image
}

func TestFrozenTrainJob_HoldsRuntimeAndDecisions(t *testing.T) {
	w := newFixture(t, plan.Options{Gang: true}, torch(), trainJob(suspend(true)))
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
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	w.edit("example.com/torch:2")
	w.change(suspend(false))
	w.settle()
	if got := w.image(); got != "example.com/torch:1" {
		t.Errorf("image %s after the runtime was edited, want the one that the job started with", got)
	}
}

// A queue full of jobs must start after the administrator changed the default: their JobSets have the pods of the one
// before.
func TestFrozenTrainJob_GangDefaultIsThatOfTheFirstRendering(t *testing.T) {
	for _, first := range []bool{true, false} {
		w := newFixture(t, plan.Options{Gang: first}, torch(), trainJob(suspend(true)))
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
	w := newFixture(t, gang(), rt, trainJob())
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

// A runtime that cannot be rendered is not frozen: its administrator will mend it.
func TestFrozenTrainJob_FaultyRuntimeIsNotFrozen(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(func(job *trainerv1alpha1.TrainJob) {
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
	w := newFixture(t, gang(), torch(), trainJob())
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
	w := newFixture(t, gang(), torch(), trainJob())
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
	w := newFixture(t, gang(), torch(), trainJob())
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
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
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
			w := newFixture(t, gang(), torch(), trainJob(suspend(true)), &statev1alpha1.FrozenTrainJob{
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
