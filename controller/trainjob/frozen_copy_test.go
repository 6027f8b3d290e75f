package trainjob_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// copied is the ConfigMap that shows the frozen runtime.
func (w *fixture) copied() *corev1.ConfigMap {
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
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
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
	w := newFixture(t, gang(), torch(), trainJob(), theirs)
	w.settle()
	if w.jobSet() == nil || w.copied().Data["mine"] != "yes" {
		t.Errorf("JobSet %t; the ConfigMap has %v", w.jobSet() != nil, w.copied().Data)
	}
}

// State that was lost, with the controller's namespace for example, is recreated from the copy.
func TestFrozenTrainJob_LostIsMadeAnewByItsCopy(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
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
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
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
