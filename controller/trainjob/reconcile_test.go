package trainjob_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/metrics"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/topology"
)

func TestReconcile_GroupsExistBeforePods(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.settle()
	want := []string{
		"create FrozenTrainJob",
		"create ConfigMap train-runtime-snapshot",
		"apply Workload",
		"apply PodGroup",
		"apply JobSet",
	}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Fatalf("writes (-want +got):\n%s", diff)
	}
	if got := w.podGroup().Spec.SchedulingPolicy.Gang.MinCount; got != 2 {
		t.Errorf("minCount = %d, want 2", got)
	}
	pod := w.jobSet().Spec.ReplicatedJobs[0].Template.Spec.Template.Spec
	if pod.SchedulingGroup == nil || *pod.SchedulingGroup.PodGroupName != "train" {
		t.Errorf("pods are in group %v, want train", pod.SchedulingGroup)
	}
	if got := w.job().Status.Conditions; len(got) != 0 {
		t.Errorf("a fresh job has conditions %v, want none", got)
	}
	if got := w.count("torch", metrics.ResultOK); got != 1 {
		t.Errorf("%v reconciliations of torch counted as ok, want 1", got)
	}
}

func TestReconcile_WithoutGangOnlyTheJobSet(t *testing.T) {
	w := newFixture(t, plan.Options{}, torch(), trainJob())
	w.settle()
	if diff := cmp.Diff(
		[]string{"create FrozenTrainJob", "create ConfigMap train-runtime-snapshot", "apply JobSet"},
		w.writes,
	); diff != "" {
		t.Fatalf("writes (-want +got):\n%s", diff)
	}
	owner := metav1.GetControllerOf(w.jobSet())
	want := &metav1.OwnerReference{
		APIVersion: "trainer.kubeflow.org/v1alpha1", Kind: "TrainJob", Name: "train", UID: "train-uid",
		Controller: new(true), BlockOwnerDeletion: new(true),
	}
	if diff := cmp.Diff(want, owner); diff != "" {
		t.Errorf("owner (-want +got):\n%s", diff)
	}
}

func TestReconcile_RunningJobSetIsLeftAlone(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(suspend(false)))
	w.start()
	rt := torch()
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(rt), rt); err != nil {
		t.Fatal(err)
	}
	rt.Spec.Template.Spec.ReplicatedJobs[0].Template.Spec.Template.Spec.Containers[0].Image = "example.com/torch:2"
	if err := w.Client.Update(t.Context(), rt); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if len(w.writes) != 0 {
		t.Errorf("writes = %v, want none while the JobSet runs", w.writes)
	}
	if err := w.Client.Delete(t.Context(), rt); err != nil {
		t.Fatal(err)
	}
	w.settle() // its runtime was deleted, which does not affect a running job
	if event := w.event(); event != "" {
		t.Errorf("event %q about a running job", event)
	}
}

func TestReconcile_RunningGroupAnnotationsFollow(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(func(job *trainerv1alpha1.TrainJob) {
		job.Annotations = map[string]string{topology.AnnotationRequiredTopology: "rack"}
	}))
	w.start()
	group := w.podGroup()
	group.Annotations["example.com/other"] = "theirs"
	if err := w.Client.Update(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	w.change(func(job *trainerv1alpha1.TrainJob) {
		job.Annotations = map[string]string{topology.AnnotationPreferredTopology: "rack"}
	})
	w.settle()
	want := map[string]string{
		topology.AnnotationPreferredTopology: "rack",
		topology.AnnotationQueuedAt:          "2026-11-21T10:00:00Z",
		"example.com/other":                  "theirs",
	}
	if diff := cmp.Diff(want, w.podGroup().Annotations); diff != "" {
		t.Errorf("annotations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"patch PodGroup"}, w.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// A trainer reports every few seconds. Its estimate is written only after a significant change.
func TestExpectedEnd_RunningGroupFollows(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.start()
	for _, step := range []struct {
		after  time.Duration
		left   int32
		end    string
		writes []string
	}{
		{after: 10 * time.Minute, left: 36000, end: "2026-11-21T20:10:00Z", writes: []string{"patch PodGroup", "patch TrainJob status"}},
		{after: 11 * time.Minute, left: 35980, end: "2026-11-21T20:10:00Z"},
		// By its reports the end has approached faster than time passes: it is expected a little earlier than 15:12.
		{after: 12 * time.Minute, left: 18000, end: "2026-11-21T15:04:35Z", writes: []string{"patch PodGroup"}},
	} {
		now := created().Add(step.after)
		w.clock.SetTime(now)
		job := w.job()
		job.Status.TrainerStatus = &trainerv1alpha1.TrainerStatus{
			LastUpdatedTime: metav1.NewTime(now), EstimatedRemainingSeconds: &step.left,
		}
		if err := w.Client.Status().Update(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if got := w.podGroup().Annotations[topology.AnnotationExpectedEnd]; got != step.end {
			t.Errorf("after %v the expected end is %s, want %s", step.after, got, step.end)
		}
		if diff := cmp.Diff(step.writes, w.writes); diff != "" {
			t.Errorf("writes after %v (-want +got):\n%s", step.after, diff)
		}
	}
}
