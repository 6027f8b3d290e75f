package trainjob_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/topology"
)

func TestSuspend_ThenResume(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.settle()
	w.clock.SetTime(created().Add(time.Minute))
	w.change(suspend(true))
	w.settle()
	want := []string{"patch JobSet", "patch TrainJob status", "delete PodGroup", "delete Workload"}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Fatalf("writes on suspension (-want +got):\n%s", diff)
	}
	if !*w.jobSet().Spec.Suspend {
		t.Error("the JobSet is not suspended")
	}
	wantConditions(t, w, metav1.Condition{
		Type: "Suspended", Status: "True", Reason: "Suspended", Message: "TrainJob is suspended",
		LastTransitionTime: metav1.NewTime(created().Add(time.Minute)),
	})

	w.clock.SetTime(created().Add(time.Hour))
	w.change(suspend(false))
	w.settle()
	want = []string{"apply Workload", "apply PodGroup", "apply JobSet", "patch TrainJob status"}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Fatalf("writes on resumption (-want +got):\n%s", diff)
	}
	if *w.jobSet().Spec.Suspend {
		t.Error("the JobSet is still suspended")
	}
	if got := w.podGroup().Annotations[topology.AnnotationQueuedAt]; got != "2026-11-21T10:00:00Z" {
		t.Errorf("queued-at = %s, want the job's creation: it belongs to the job", got)
	}
	wantConditions(t, w, metav1.Condition{
		Type: "Suspended", Status: "False", Reason: "Resumed", Message: "TrainJob is resumed",
		LastTransitionTime: metav1.NewTime(created().Add(time.Hour)),
	})
}

// The condition of a resumed job stays beside that of its end, as Kubeflow Trainer's own tests have it, and its instant
// is that from which deadlines count there. For the Kubeflow SDK a job with any condition never runs (docs/sdk.md), but
// without the instant a Kubeflow Trainer that takes over would fail jobs that waited in a queue.
func TestResumedJob_KeepsItsConditionToTheEnd(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	resumed := created().Add(time.Hour)
	w.clock.SetTime(resumed)
	w.change(suspend(false))
	w.settle()
	w.clock.SetTime(resumed.Add(time.Hour))
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: string(jobsetv1alpha2.JobSetCompleted), Status: metav1.ConditionTrue, Reason: "AllJobsCompleted",
		})
	})
	w.settle()
	wantConditions(t, w, metav1.Condition{
		Type: "Suspended", Status: "False", Reason: "Resumed", Message: "TrainJob is resumed",
		LastTransitionTime: metav1.NewTime(resumed),
	}, metav1.Condition{Type: "Complete", Status: "True", Reason: "AllJobsCompleted"})
}

func TestResume_WaitsForTheEarlierGroup(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	group := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "train", Finalizers: []string{"scheduling.k8s.io/podgroup-protection"},
		OwnerReferences: w.jobSet().OwnerReferences,
	}}
	if err := errors.Join(w.Client.Create(t.Context(), group), w.Client.Delete(t.Context(), group)); err != nil {
		t.Fatal(err)
	}
	w.change(suspend(false))
	if result := w.settle(); result.RequeueAfter == 0 {
		t.Error("it does not come back")
	}
	if !*w.jobSet().Spec.Suspend {
		t.Error("pods were started while the earlier group was still there")
	}
	gone := w.podGroup()
	gone.Finalizers = nil
	if err := w.Client.Update(t.Context(), gone); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if *w.jobSet().Spec.Suspend || w.podGroup() == nil {
		t.Error("the job was not resumed after the earlier group had gone")
	}
}

func TestSuspend_NeedsNoRuntime(t *testing.T) {
	rt := torch()
	w := newFixture(t, gang(), rt, trainJob())
	w.settle()
	for _, gone := range []client.Object{rt, w.state(), w.copied()} {
		if err := w.Client.Delete(t.Context(), gone); err != nil {
			t.Fatal(err)
		}
	}
	w.change(suspend(true))
	w.settle()
	if event := w.event(); !strings.Contains(event, resolve.ErrMissing.Error()) {
		t.Errorf("event %q, want one that tells that the runtime is gone", event)
	}
	if suspended := w.jobSet().Spec.Suspend; suspended == nil || !*suspended {
		t.Error("the job could not be suspended because its runtime is gone")
	}
	w.settle()
	if w.podGroup() != nil {
		t.Error("the group of a suspended job was kept because its runtime is gone")
	}
}
