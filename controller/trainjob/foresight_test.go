package trainjob_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/topology"
)

// report writes the trainer's report of the remaining seconds, so long after the job's creation.
func (w *fixture) report(after time.Duration, left int32) {
	w.t.Helper()
	w.reportAhead(after, 0, left)
}

// reportAhead writes a report of a trainer with a clock that is ahead.
func (w *fixture) reportAhead(after, ahead time.Duration, left int32) {
	w.t.Helper()
	now := created().Add(after)
	w.clock.SetTime(now)
	job := w.job()
	job.Status.TrainerStatus = &trainerv1alpha1.TrainerStatus{
		LastUpdatedTime: metav1.NewTime(now.Add(ahead)), EstimatedRemainingSeconds: &left,
	}
	if err := w.Client.Status().Update(w.t.Context(), job); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

// expected returns the time from an instant to the expected end of the job.
func (w *fixture) expected(after time.Duration) time.Duration {
	w.t.Helper()
	end, err := time.Parse(time.RFC3339, w.podGroup().Annotations[topology.AnnotationExpectedEnd])
	if err != nil {
		w.t.Fatal(err)
	}
	return end.Sub(created().Add(after))
}

// A trainer that ends in five seconds for ever does not have others wait for that, or start behind it.
func TestExpectedEnd_MissedEndsAreNotBelieved(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.start()
	var after time.Duration
	for ; after <= 2*time.Hour; after += 30 * time.Second {
		w.report(after, 5)
	}
	if left := w.expected(after - 30*time.Second); left < time.Hour {
		t.Errorf("after two hours it is expected to end in %v", left)
	}
}

// A report is recorded once, however often its job is reconciled until a clock that is behind reaches it.
func TestExpectedEnd_FastClockMovesNothing(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.start()
	w.reportAhead(time.Minute, 10*time.Minute, 3600)
	for second := range 600 {
		w.clock.SetTime(created().Add(time.Minute + time.Duration(second)*time.Second))
		w.settle()
	}
	if left := w.expected(time.Minute); left != time.Hour {
		t.Errorf("it is expected to end in %v, want the hour that was reported", left)
	}
}

// The next job of a runtime is judged by those that have completed, also by a controller that has just started; a
// tenant's record is his own.
func TestExpectedEnd_JudgedByEarlierJobs(t *testing.T) {
	rt := torch()
	w := newFixture(t, gang(), rt, trainJob())
	w.start()
	w.report(time.Minute, 3600)
	if first := w.job().Status.Scheduling.FirstEstimate; first == nil ||
		!first.End.Time.Equal(created().Add(61*time.Minute)) {
		t.Fatalf("first estimate %+v, want 61 minutes after the creation", first)
	}
	w.report(2*time.Hour+30*time.Minute, 600)
	if first := w.job().Status.Scheduling.FirstEstimate; !first.ReportedAt.Time.Equal(created().Add(time.Minute)) {
		t.Fatalf("first estimate of %v, want the first", first.ReportedAt)
	}
	w.clock.SetTime(created().Add(3*time.Hour + time.Minute))
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.Conditions = []metav1.Condition{{
			Type: string(jobsetv1alpha2.JobSetCompleted), Status: metav1.ConditionTrue, Reason: "AllJobsCompleted",
			LastTransitionTime: metav1.NewTime(w.clock.Now()),
		}}
	})
	w.settle()
	done := w.job()

	for name, c := range map[string]struct {
		namespace string
		want      time.Duration
	}{"in the same namespace": {done.Namespace, 3 * time.Hour}, "in another one": {"stranger", time.Hour}} {
		t.Run(name, func(t *testing.T) {
			next := newFixture(t, gang(), torch(), trainJob())
			for _, uid := range []string{"a", "b", "c"} {
				earlier := done.DeepCopy()
				earlier.Name, earlier.UID, earlier.Namespace, earlier.ResourceVersion = uid, types.UID(
					uid,
				), c.namespace, ""
				if err := next.Client.Create(t.Context(), earlier); err != nil {
					t.Fatal(err)
				}
				request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(earlier)}
				if _, err := next.Reconcile(t.Context(), request); err != nil {
					t.Fatal(err)
				}
			}
			next.start()
			next.report(time.Minute, 3600)
			if left := next.expected(time.Minute); left != c.want {
				t.Errorf("it is expected to end in %v, want %v", left, c.want)
			}
		})
	}
}

// A status server writes a report of each job every half minute. Of one that changes no decision the reconciler asks
// the API server nothing, and writes nothing.
func TestReports_ThatChangeNothingCostNoCall(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.start()
	w.report(time.Minute, 3600) // the first estimate
	w.settle()
	w.Live = nil // a live read would panic
	w.Resolver = resolve.New(w.Client, nil, system)
	for i := range int32(20) {
		w.report(time.Minute+time.Duration(30*i)*time.Second, 3600-30*i)
		if len(w.writes) > 0 {
			t.Fatalf("report %d: wrote %v", i, w.writes)
		}
	}
	w.report(20*time.Minute, 7200)
	if len(w.writes) == 0 {
		t.Error("wrote nothing of an end that moved by an hour")
	}
}
