package trainjob_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	coschedulingv1alpha1 "sigs.k8s.io/scheduler-plugins/apis/scheduling/v1alpha1"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/ownership"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/trainjob"
)

func coscheduled() *trainerv1alpha1.ClusterTrainingRuntime {
	rt := torch()
	rt.Spec.PodGroupPolicy = &trainerv1alpha1.PodGroupPolicy{PodGroupPolicySource: trainerv1alpha1.PodGroupPolicySource{
		Coscheduling: &trainerv1alpha1.CoschedulingPodGroupPolicySource{},
	}}
	return rt
}

// A runtime for another gang scheduler gets that one's group and none of ours, before its pods and until the job's end.
func TestCoscheduling_GroupBeforePods(t *testing.T) {
	w := newFixture(t, gang(), coscheduled(), trainJob(suspend(false)))
	w.settle()
	want := []string{
		"create FrozenTrainJob",
		"create ConfigMap train-runtime-snapshot",
		"apply PodGroup",
		"apply JobSet",
	}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Fatalf("writes (-want +got):\n%s", diff)
	}
	var group coschedulingv1alpha1.PodGroup
	if !w.get(&group) || group.Spec.MinMember != 2 || !ownership.Controls(w.job(), plan.TrainJobKind(), &group) {
		t.Errorf("the group is %+v of %v, want one of two members", group.Spec, group.OwnerReferences)
	}
	if w.podGroup() != nil {
		t.Error("there is a group of ours too")
	}
	w.change(suspend(true))
	w.settle()
	if !w.get(&group) {
		t.Error("the group of a suspended job went")
	}
	w.change(suspend(false))
	w.settle()
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.Conditions = []metav1.Condition{{Type: "Completed", Status: "True", Reason: "AllJobsCompleted"}}
	})
	w.settle()
	if w.get(&group) {
		t.Error("the group outlived the job")
	}
}

func TestCoscheduling_ForeignGroupIsNotTaken(t *testing.T) {
	theirs := &coschedulingv1alpha1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train"}}
	w := newFixture(t, gang(), coscheduled(), trainJob(), theirs)
	if _, err := w.reconcile(); !errors.Is(err, trainjob.ErrForeign) {
		t.Fatalf("error %v, want ErrForeign", err)
	}
	if slices.Contains(w.writes, "apply JobSet") {
		t.Errorf("writes = %v: the pods would start without their group", w.writes)
	}
}
