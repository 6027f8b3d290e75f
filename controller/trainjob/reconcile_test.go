package trainjob_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/instruments"
	"github.com/lockstep-project/lockstep/controller/plan"
	"github.com/lockstep-project/lockstep/controller/resolve"
	"github.com/lockstep-project/lockstep/controller/trainjob"
	"github.com/lockstep-project/lockstep/topology"
)

func TestReconcile_GroupsExistBeforePods(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob())
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
	if got := w.count("torch", instruments.ResultOK); got != 1 {
		t.Errorf("%v reconciliations of torch counted as ok, want 1", got)
	}
}

func TestReconcile_WithoutGangOnlyTheJobSet(t *testing.T) {
	w := newWorld(t, plan.Options{}, torch(), trainJob())
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
	w := newWorld(t, gang(), torch(), trainJob(suspend(false)))
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
	w := newWorld(t, gang(), torch(), trainJob(func(job *trainerv1alpha1.TrainJob) {
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
	w := newWorld(t, gang(), torch(), trainJob())
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

func TestSuspend_ThenResume(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob())
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

// The condition of a resumed job stays beside that of its end, as Kubeflow Trainer's own tests have it, and its instant is that from which deadlines count
// there. For the Kubeflow SDK a job with any condition never runs (docs/sdk.md), but without the instant a Kubeflow Trainer that takes over would
// fail jobs that waited in a queue.
func TestResumedJob_KeepsItsConditionToTheEnd(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(suspend(true)))
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
	w := newWorld(t, gang(), torch(), trainJob(suspend(true)))
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

func TestStatus_CopiedFromJobSet(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob())
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
	if diff := cmp.Diff([]string{"patch TrainJob status"}, w.writes); diff != "" {
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
	w := newWorld(t, gang(), torch(), trainJob())
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

// Other gangs wait for the devices of a group with shared claims: it is deleted with its job.
func TestPodGroups_WithClaimsDeletedAtOnce(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob())
	w.settle()
	group := w.podGroup()
	group.Spec.ResourceClaims = []schedulingv1beta1.PodGroupResourceClaim{{Name: "channel"}}
	if err := w.Client.Update(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.Conditions = []metav1.Condition{
			{
				Type:               "Completed",
				Status:             "True",
				Reason:             "AllJobsCompleted",
				LastTransitionTime: metav1.NewTime(created()),
			},
		}
	})
	w.settle()
	if w.podGroup() != nil {
		t.Error("the group of a finished job still holds its claims")
	}
}

func TestDeadline_FailsTheJob(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(deadline(60)))
	w.clock.SetTime(created().Add(20 * time.Second))
	if got := w.settle().RequeueAfter; got != 40*time.Second {
		t.Errorf("comes back after %v, want 40s", got)
	}
	w.clock.SetTime(created().Add(61 * time.Second))
	w.settle()
	want := []string{"patch TrainJob status", "delete JobSet"}
	if diff := cmp.Diff(want, w.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	failed := metav1.Condition{
		Type: "Failed", Status: "True", Reason: "DeadlineExceeded", Message: "TrainJob exceeded its active deadline",
		LastTransitionTime: metav1.NewTime(created().Add(61 * time.Second)),
	}
	wantConditions(t, w, failed)
	w.change(suspend(true))
	w.settle()
	w.change(suspend(false))
	w.settle()
	if w.jobSet() != nil {
		t.Error("a job that missed its deadline was revived")
	}
}

func TestDeadline_RestartsOnResume(t *testing.T) {
	w := newWorld(t, plan.Options{}, torch(), trainJob(deadline(60), suspend(true)))
	w.clock.SetTime(created().Add(time.Hour))
	if got := w.settle().RequeueAfter; got != 0 {
		t.Errorf("a suspended job comes back after %v, want never", got)
	}
	w.clock.SetTime(created().Add(2 * time.Hour))
	w.change(suspend(false))
	if got := w.settle().RequeueAfter; got != time.Minute {
		t.Errorf("a resumed job comes back after %v, want 1m", got)
	}
}

func TestManagedBy_ForeignJobsAreNotTouched(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(suspend(true), deadline(1), func(job *trainerv1alpha1.TrainJob) {
		job.Spec.ManagedBy = new("kueue.x-k8s.io/multikueue")
	}))
	w.clock.SetTime(created().Add(time.Hour))
	w.settle()
	if len(w.writes) != 0 {
		t.Errorf("writes = %v, want none", w.writes)
	}
}

func TestRuntimeRef_MissingRuntime(t *testing.T) {
	for _, rt := range []client.Object{
		torch(),
		&trainerv1alpha1.TrainingRuntime{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "torch"}, Spec: torchSpec(),
		},
	} {
		kind := trainerv1alpha1.ClusterTrainingRuntimeKind
		if rt.GetNamespace() != "" {
			kind = trainerv1alpha1.TrainingRuntimeKind
		}
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t, gang(), trainJob(func(job *trainerv1alpha1.TrainJob) { job.Spec.RuntimeRef.Kind = &kind }))
			if result := w.settle(); result.RequeueAfter == 0 {
				t.Error("it does not come back")
			}
			if event := w.event(); !strings.Contains(event, "TrainJobResourcesCreationFailed") ||
				!strings.Contains(event, "torch") {
				t.Errorf("event %q, want one that names the runtime", event)
			}
			if got := w.count("unknown", instruments.ResultMissingRuntime); got != 1 {
				t.Errorf("counted %v times, want once", got)
			}
			if err := w.Client.Create(t.Context(), rt); err != nil {
				t.Fatal(err)
			}
			requests := w.JobsOf(kind)(t.Context(), rt)
			if len(requests) != 1 || requests[0].Name != "train" {
				t.Fatalf("the runtime's appearance wakes %v, want train", requests)
			}
			w.settle()
			if w.jobSet() == nil {
				t.Error("no JobSet after the runtime appeared")
			}
		})
	}
}

func TestReconcile_RefusedJobIsNotRetried(t *testing.T) {
	w := newWorld(t, gang(), torch(), trainJob(func(job *trainerv1alpha1.TrainJob) {
		job.Annotations = map[string]string{topology.AnnotationSpares: "some"}
	}))
	if _, err := w.reconcile(); !errors.Is(err, reconcile.TerminalError(nil)) {
		t.Fatalf("error %v, want a terminal one", err)
	}
	if event := w.event(); !strings.Contains(event, topology.AnnotationSpares) {
		t.Errorf("event %q, want one that names the annotation", event)
	}
	if w.jobSet() != nil || w.podGroup() != nil {
		t.Error("a refused job was rendered")
	}
}

func TestRuntimeRef_UnknownKindIsRefused(t *testing.T) {
	w := newWorld(t, gang(), trainJob(func(job *trainerv1alpha1.TrainJob) { job.Spec.RuntimeRef.Kind = new("Recipe") }))
	_, err := w.reconcile()
	if !errors.Is(err, reconcile.TerminalError(nil)) || !strings.Contains(err.Error(), "Recipe.trainer.kubeflow.org") {
		t.Fatalf("error %v, want a terminal one that names the kind", err)
	}
}

func TestReconcile_ForeignJobSetIsNotTaken(t *testing.T) {
	theirs := &jobsetv1alpha2.JobSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train"}}
	w := newWorld(t, gang(), torch(), trainJob(), theirs)
	if _, err := w.reconcile(); !errors.Is(err, trainjob.ErrForeign) {
		t.Fatalf("error %v, want ErrForeign", err)
	}
	if slices.ContainsFunc(w.writes, func(write string) bool { return strings.HasPrefix(write, "apply") }) {
		t.Errorf("writes = %v, want no apply", w.writes)
	}
}

func TestSuspend_NeedsNoRuntime(t *testing.T) {
	rt := torch()
	w := newWorld(t, gang(), rt, trainJob())
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

func wantConditions(t *testing.T, w *world, want ...metav1.Condition) {
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
