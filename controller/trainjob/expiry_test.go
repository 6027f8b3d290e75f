package trainjob_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// keepFor sets how long the runtime's finished jobs stay.
func (w *fixture) keepFor(seconds int32) {
	w.t.Helper()
	rt := torch()
	if err := w.Client.Get(w.t.Context(), client.ObjectKeyFromObject(rt), rt); err != nil {
		w.t.Fatal(err)
	}
	rt.Spec.TTLSecondsAfterFinished = &seconds
	if err := w.Client.Update(w.t.Context(), rt); err != nil {
		w.t.Fatal(err)
	}
}

func (w *fixture) exists() bool {
	w.t.Helper()
	var job trainerv1alpha1.TrainJob
	err := w.Client.Get(w.t.Context(), types.NamespacedName{Namespace: namespace, Name: "train"}, &job)
	if err != nil && !apierrors.IsNotFound(err) {
		w.t.Fatal(err)
	}
	return err == nil
}

func TestTTL_FinishedJobsAreDeleted(t *testing.T) {
	end := created().Add(time.Hour)
	w := newFixture(t, gang(), torch(), trainJob())
	w.settle()
	w.keepFor(600)
	w.clock.SetTime(created().Add(30 * time.Minute))
	if w.settle(); !w.exists() {
		t.Fatal("a job that runs was deleted")
	}
	w.finish(end)
	w.clock.SetTime(end.Add(5 * time.Minute))
	if left := w.settle().RequeueAfter; left != 5*time.Minute || !w.exists() {
		t.Errorf("it comes back in %v, want 5m", left)
	}
	w.clock.SetTime(end.Add(10 * time.Minute))
	if w.settle(); w.exists() {
		t.Error("the job is still there when its time is over")
	}
}

// The administrator may think of it later, and change his mind.
func TestTTL_CurrentRuntimeDecides(t *testing.T) {
	end := created().Add(time.Hour)
	w := newFixture(t, gang(), torch(), trainJob())
	w.settle()
	w.finish(end)
	w.clock.SetTime(end.Add(24 * time.Hour))
	if left := w.settle().RequeueAfter; left != 0 || !w.exists() {
		t.Errorf("without a limit it comes back in %v", left)
	}
	w.keepFor(48 * 3600)
	if got := len(w.JobsOf(trainerv1alpha1.ClusterTrainingRuntimeKind)(t.Context(), torchThatExpires())); got != 1 {
		t.Errorf("%d jobs are looked at when the limit is set, want the finished one", got)
	}
	if left := w.settle().RequeueAfter; left != 24*time.Hour {
		t.Errorf("it comes back in %v, want 24h", left)
	}
	w.keepFor(3600)
	if w.settle(); w.exists() {
		t.Error("the job is still there when the limit was lowered")
	}
}

func TestTTL_JobStaysWithoutRuntime(t *testing.T) {
	end := created().Add(time.Hour)
	w := newFixture(t, gang(), torch(), trainJob())
	w.settle()
	w.keepFor(0)
	if err := w.Client.Delete(t.Context(), torch()); err != nil {
		t.Fatal(err)
	}
	w.finish(end)
	if !w.exists() {
		t.Error("the job was deleted by a rule that is no more")
	}
}

func torchThatExpires() *trainerv1alpha1.ClusterTrainingRuntime {
	rt := torch()
	rt.Spec.TTLSecondsAfterFinished = new(int32(1))
	return rt
}
