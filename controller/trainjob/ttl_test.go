package trainjob_test

import (
	"slices"
	"testing"
	"time"

	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/plan"
)

// ttl returns the TTL of the job's JobSet in seconds; -1 without one.
func (w *fixture) ttl() int32 {
	w.t.Helper()
	if seconds := w.jobSet().Spec.TTLSecondsAfterFinished; seconds != nil {
		return *seconds
	}
	return -1
}

// A JobSet with a TTL could be deleted after its end, and before a controller has recorded the end: another controller
// would create it again, and the training with it. Its job's end starts the TTL.
func TestTTL_JobSetHasOneOnlyOnceItsJobHasEnded(t *testing.T) {
	runtime := torch()
	runtime.Spec.Template.Spec.TTLSecondsAfterFinished = new(int32(60))
	for name, test := range map[string]struct {
		// after is the time from the end to the first look at it.
		after time.Duration
		// gone has the runtime deleted while the job runs.
		gone bool
	}{
		"the end is seen at once":        {},
		"no controller runs for an hour": {after: time.Hour},
		"its runtime was deleted":        {gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, gang(), runtime.DeepCopy(), trainJob())
			if w.start(); w.ttl() != -1 {
				t.Fatalf("the JobSet of a job that runs has a TTL of %d s", w.ttl())
			}
			if test.gone {
				if err := w.Client.Delete(t.Context(), torch()); err != nil {
					t.Fatal(err)
				}
			}
			end := created().Add(time.Hour)
			w.clock.SetTime(end.Add(test.after))
			w.restart()
			w.complete(end)
			if w.settle(); !w.job().Ended() || w.ttl() != 60 {
				t.Fatalf("the job has ended: %v, and its JobSet has a TTL of %d s, want 60", w.job().Ended(), w.ttl())
			}
			w.clock.SetTime(end.Add(2 * time.Hour))
			for range 2 {
				if w.settle(); slices.Contains(w.writes, "patch JobSet") {
					t.Errorf("writes %v, want the TTL to be set once", w.writes)
				}
			}
		})
	}
}

// JobSets of an earlier version, or of Kubeflow Trainer, run with a TTL.
func TestTTL_RunningJobSetLosesIt(t *testing.T) {
	runtime := torch()
	runtime.Spec.Template.Spec.TTLSecondsAfterFinished = new(int32(60))
	limited := func(jobSet *jobsetv1alpha2.JobSet) { jobSet.Spec.TTLSecondsAfterFinished = new(int32(60)) }
	w := newFixture(t, plan.Options{}, runtime, trainJob(), upstreams(t, limited))
	if w.settle(); w.ttl() != -1 {
		t.Errorf("it runs with a TTL of %d s", w.ttl())
	}
	w = newFixture(t, plan.Options{}, runtime, trainJob(), upstreams(t, limited))
	w.complete(created())
	if w.settle(); w.ttl() != 60 || slices.Contains(w.writes, "patch JobSet") {
		t.Errorf("the TTL of one that has completed is %d s after writes %v", w.ttl(), w.writes)
	}
}

// A job whose frozen state cannot be read is cleaned up all the same.
func TestTTL_UnreadableFrozenRuntime(t *testing.T) {
	runtime := torch()
	runtime.Spec.Template.Spec.TTLSecondsAfterFinished = new(int32(60))
	w := newFixture(t, gang(), runtime, trainJob())
	w.start()
	state := w.state()
	state.Spec.Runtime.Raw = []byte(`{"kind":"Secret"}`)
	if err := w.Client.Update(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	w.finish(created().Add(time.Hour))
	w.clock.SetTime(created().Add(2 * time.Hour))
	if w.settle(); len(w.states()) > 0 {
		t.Error("the frozen state stays")
	}
}
