package trainjob_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/trainjob"
)

func TestManagedBy_ForeignJobsAreNotTouched(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(suspend(true), deadline(1), func(job *trainerv1alpha1.TrainJob) {
		job.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue")
	}))
	w.clock.SetTime(created().Add(time.Hour))
	w.settle()
	if len(w.writes) != 0 {
		t.Errorf("writes = %v, want none", w.writes)
	}
}

func TestReconcile_ForeignJobSetIsNotTaken(t *testing.T) {
	theirs := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train"}}
	w := newFixture(t, gang(), torch(), trainJob(), theirs)
	if _, err := w.reconcile(); !errors.Is(err, trainjob.ErrForeign) {
		t.Fatalf("error %v, want ErrForeign", err)
	}
	if slices.ContainsFunc(w.writes, func(write string) bool { return strings.HasPrefix(write, "apply") }) {
		t.Errorf("writes = %v, want no apply", w.writes)
	}
}

// A JobSet that claims to be the job's by its UID alone is a foreign one.
func TestReconcile_LeavesAForeignJobSetAlone(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
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
