package trainjob_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/resolve"
)

// snapshot reads the job's copy of its runtime.
func (w *world) snapshot() *corev1.ConfigMap {
	w.t.Helper()
	var config corev1.ConfigMap
	key := types.NamespacedName{Namespace: namespace, Name: "train-runtime-snapshot"}
	if err := w.Client.Get(w.t.Context(), key, &config); err != nil {
		w.t.Fatal(err)
	}
	return &config
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

func TestAJobKeepsTheRuntimeItStartedWith(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	snapshot := w.snapshot()
	for _, want := range []string{"kind: ClusterTrainingRuntime", "name: torch", "apiVersion: trainer.kubeflow.org/v1alpha1"} {
		if !strings.Contains(snapshot.Data["runtime"], want) {
			t.Errorf("the snapshot has no %q:\n%s", want, snapshot.Data["runtime"])
		}
	}
	if !metav1.IsControlledBy(snapshot, w.job()) || snapshot.Immutable == nil || !*snapshot.Immutable {
		t.Errorf("the snapshot is owned by %v and immutable %v", snapshot.OwnerReferences, snapshot.Immutable)
	}
	w.edit("example.com/torch:2")
	w.change(suspend(false))
	w.settle()
	if got := w.image(); got != "example.com/torch:1" {
		t.Errorf("image %s after the runtime was edited, want the one that the job started with", got)
	}
}

func TestAJobOutlivesItsRuntime(t *testing.T) {
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

func TestWithoutItsSnapshotAJobTakesTheRuntimeAsItIs(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	w.edit("example.com/torch:2")
	if err := w.Client.Delete(t.Context(), w.snapshot()); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := w.image(); got != "example.com/torch:2" {
		t.Errorf("image %s, want that of the runtime as it is", got)
	}
	if !strings.Contains(w.snapshot().Data["runtime"], "example.com/torch:2") {
		t.Error("the new snapshot is not of the runtime as it is")
	}
}

// A runtime that nothing can be made of is no runtime to keep: it will be mended.
func TestAFaultyRuntimeIsNotKept(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(func(job *trainerv1alpha1.TrainJob) {
		job.Spec.Initializer = &trainerv1alpha1.Initializer{Dataset: &trainerv1alpha1.DatasetInitializer{}}
	}))
	if _, err := w.reconcile(); err == nil {
		t.Fatal("a runtime without the initializer that the job wants was not refused")
	}
	if len(w.writes) != 0 {
		t.Errorf("writes %v, want none", w.writes)
	}
}

func TestSnapshotsThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*corev1.ConfigMap)
		want  string
	}{
		"of a job that was deleted": {
			func(c *corev1.ConfigMap) { c.OwnerReferences[0].UID = "earlier" },
			"a snapshot configmap exists but is owned by another object",
		},
		"without the key": {func(c *corev1.ConfigMap) { c.Data = nil }, `missing "runtime" data key`},
		"that is no YAML": {func(c *corev1.ConfigMap) { c.Data["runtime"] = "\t{" }, "unable to unmarshal the snapshot"},
		"of another runtime": {func(c *corev1.ConfigMap) {
			c.Data["runtime"] = strings.Replace(c.Data["runtime"], "name: torch", "name: other", 1)
		}, "refers to the wrong runtime"},
		"of another kind": {func(c *corev1.ConfigMap) {
			c.Data["runtime"] = strings.Replace(c.Data["runtime"], "kind: Cluster", "kind: ", 1)
		}, "refers to the wrong runtime"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, gang(), torch(), trainJob(suspend(true)))
			snapshot, err := resolve.Snapshot(trainJob(), torch())
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(snapshot)
			if err = w.Client.Create(t.Context(), snapshot); err != nil {
				t.Fatal(err)
			}
			if _, err = w.reconcile(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %v, want one with %q", err, c.want)
			}
			if event := w.event(); !strings.Contains(event, "unable to get runtime snapshot: ") {
				t.Errorf("event %q does not say that it is the snapshot", event)
			}
			if w.jobSet() != nil {
				t.Error("a JobSet was made of it")
			}
		})
	}
}
