package trainjob_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/plan"
)

// TestReconcile_UnchangedJobSetIsNotReapplied holds when a suspended job's JobSet is left alone: while no other content
// is wanted, and no other client has changed it.
func TestReconcile_UnchangedJobSetIsNotReapplied(t *testing.T) {
	runtime := torch()
	runtime.Spec.Template.Labels = map[string]string{"team": "a"}
	w := newFixture(t, plan.Options{}, runtime, trainJob(suspend(true)))
	w.settle()
	// The fake cluster gives neither identities nor generations; a real one does.
	generation := int64(1)
	stamp := func() {
		t.Helper()
		jobSet := w.jobSet()
		jobSet.UID, jobSet.Generation = "jobset-uid", generation
		if err := w.Client.Update(t.Context(), jobSet); err != nil {
			t.Fatal(err)
		}
	}
	applies := func(when string, want int) {
		t.Helper()
		if got := w.applies("JobSet"); got != want {
			t.Errorf("%s: %d applies, want %d (%v)", when, got, want, w.writes)
		}
	}
	stamp()
	applies("nothing changed", 0)

	generation++
	jobSet := w.jobSet()
	jobSet.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Image = "example.com/theirs:1"
	if err := w.Client.Update(t.Context(), jobSet); err != nil {
		t.Fatal(err)
	}
	stamp()
	applies("somebody changed its spec", 1)
	applies("nothing changed since", 0)

	w.change(func(job *trainerv1alpha1.TrainJob) {
		job.Spec.Trainer = &trainerv1alpha1.Trainer{NumNodes: new(int32(3))}
	})
	applies("its plan changed", 1)
	applies("nothing changed after the plan", 0)

	jobSet = w.jobSet()
	delete(jobSet.Labels, "team")
	if err := w.Client.Update(t.Context(), jobSet); err != nil {
		t.Fatal(err)
	}
	applies("somebody took a label away, which changes no generation", 1)

	jobSet = w.jobSet()
	if err := w.Client.Delete(t.Context(), jobSet); err != nil {
		t.Fatal(err)
	}
	applies("somebody deleted it", 1)
	w.restart()
	stamp()
	applies("another process", 0)
	if owner := metav1.GetControllerOf(w.jobSet()); owner == nil || owner.UID != "train-uid" {
		t.Errorf("owner %v", owner)
	}
}
