package trainjob_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
)

// A gang of four runs, one member is lost, and the others become complete, one after the other. It needs as many as it has left;
// and all again when everything starts again.
func TestMinCount_ExcludesCompletedMembers(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob())
	w.settle()
	whole := w.podGroup().Spec.SchedulingPolicy.Gang.MinCount
	if whole < 2 {
		t.Fatalf("the gang needs %d: the scene is wrong", whole)
	}
	work := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train-node-0"}}
	if err := w.Client.Create(t.Context(), work); err != nil {
		t.Fatal(err)
	}
	ready := func(n int32) {
		w.say(func(status *jobsetv1alpha2.JobSetStatus) {
			status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "node", Ready: n}}
		})
	}
	for _, step := range []struct {
		when            string
		scheduled       bool
		ready, complete int32
		wantNeed        int32
		wantLook        bool
	}{
		{when: "it waits", wantNeed: whole},
		{when: "it starts", scheduled: true, wantNeed: whole, wantLook: true},
		{when: "it runs", scheduled: true, ready: 1, wantNeed: whole},
		{when: "one is lost", scheduled: true, wantNeed: whole, wantLook: true},
		{when: "one is complete", scheduled: true, complete: 1, wantNeed: whole - 1, wantLook: true},
		{when: "all others are", scheduled: true, complete: whole, wantNeed: 1, wantLook: true},
		{when: "all start again", scheduled: true, wantNeed: whole, wantLook: true},
	} {
		group := w.podGroup()
		if step.scheduled {
			group.Status.Conditions = []metav1.Condition{
				{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled"},
			}
			if err := w.Client.Update(t.Context(), group); err != nil {
				t.Fatal(err)
			}
		}
		work.Status.Succeeded = step.complete
		if err := w.Client.Status().Update(t.Context(), work); err != nil {
			t.Fatal(err)
		}
		ready(step.ready)
		result := w.settle()
		if got := w.podGroup().Spec.SchedulingPolicy.Gang.MinCount; got != step.wantNeed {
			t.Errorf("when %s it needs %d members, want %d", step.when, got, step.wantNeed)
		}
		if again := result.RequeueAfter == 30*time.Second; again != step.wantLook {
			t.Errorf("when %s it is looked at again after %s", step.when, result.RequeueAfter)
		}
	}
}
