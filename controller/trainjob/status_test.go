package trainjob_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

func TestStatus_CopiedFromJobSet(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.settle()
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{
			{Name: "node", Active: 1}, {Name: "another", Ready: 1, Succeeded: 2, Failed: 3, Suspended: 4},
		}
		status.Conditions = []metav1.Condition{{Type: "StartupPolicyCompleted", Status: "True", Reason: "x"}}
	})
	w.settle()
	zero, one := new(int32(0)), new(int32(1))
	want := []trainerv1alpha1.JobStatus{
		{Name: "node", Ready: zero, Succeeded: zero, Failed: zero, Active: one, Suspended: zero},
		{
			Name: "another", Ready: one, Succeeded: new(int32(2)), Failed: new(int32(3)), Active: zero,
			Suspended: new(int32(4)),
		},
	}
	if diff := cmp.Diff(want, w.job().Status.JobsStatus); diff != "" {
		t.Errorf("jobsStatus (-want +got):\n%s", diff)
	}
	wantConditions(t, w)

	ended := metav1.NewTime(created().Add(time.Hour))
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: "Completed", Status: "True", Reason: "AllJobsCompleted", Message: "done", LastTransitionTime: ended,
		})
	})
	w.clock.SetTime(ended.Add(5 * time.Second))
	if got := w.settle().RequeueAfter; got != 40*time.Second {
		t.Errorf("comes back after %v to take the group away, want 40s", got)
	}
	wantConditions(t, w, metav1.Condition{
		Type: "Complete", Status: "True", Reason: "AllJobsCompleted", Message: "done", LastTransitionTime: ended,
	})
	if diff := cmp.Diff([]string{"patch TrainJob status", "patch PodGroup"}, w.writes); diff != "" {
		t.Errorf("writes at the end (-want +got):\n%s", diff)
	}
	w.clock.SetTime(ended.Add(45 * time.Second))
	w.settle()
	gone := []string{
		"delete PodGroup",
		"delete Workload",
		"delete ConfigMap train-runtime-snapshot",
		"delete FrozenTrainJob",
	}
	if diff := cmp.Diff(gone, w.writes); diff != "" {
		t.Errorf("writes 45 s after the end (-want +got):\n%s", diff)
	}
	w.settle()
	if len(w.writes) != 0 {
		t.Errorf("writes = %v, want none once all is done", w.writes)
	}
}

func TestStatus_FailureIsFinal(t *testing.T) {
	failed := metav1.Condition{
		Type:               "Failed",
		Status:             "True",
		Reason:             "FailedJobs",
		Message:            "no",
		LastTransitionTime: metav1.NewTime(created()),
	}
	w := newFixture(t, gang(), torch(), trainJob())
	w.settle()
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.Conditions = []metav1.Condition{failed}
	})
	w.settle()
	if err := w.Client.Delete(t.Context(), w.jobSet()); err != nil {
		t.Fatal(err)
	}
	w.clock.SetTime(created().Add(time.Hour))
	w.settle()
	if w.jobSet() != nil || w.podGroup() != nil {
		t.Error("a failed job was run again because its JobSet had gone")
	}
	wantConditions(t, w, failed)
}

func wantConditions(t *testing.T, w *fixture, want ...metav1.Condition) {
	t.Helper()
	sameInstant := cmp.Comparer(func(a, b metav1.Time) bool { return a.Time.Equal(b.Time) })
	ignored := cmp.Options{sameInstant, cmpopts.EquateEmpty()}
	got := w.job().Status.Conditions
	for i := range want {
		if want[i].LastTransitionTime.IsZero() && i < len(got) {
			want[i].LastTransitionTime = got[i].LastTransitionTime
		}
	}
	if diff := cmp.Diff(want, got, ignored); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}
