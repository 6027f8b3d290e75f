package trainjob_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// hear has the scheduler set a condition of the job's group.
func (w *fixture) hear(kind string, status metav1.ConditionStatus, reason, message string) {
	w.t.Helper()
	group := w.podGroup()
	meta.SetStatusCondition(&group.Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(w.clock.Now()),
	})
	if err := w.Client.Update(w.t.Context(), group); err != nil {
		w.t.Fatal(err)
	}
}

// A job's status has its place, in one write, and its conditions stay upstream's three: Kueue and the SDK read those.
func TestStatus_ExplainsScheduling(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.start()
	w.hear(standing.Waiting, metav1.ConditionTrue, "NoRoom", "needs 2 nodes; 1 is free")
	w.hear(standing.Queued, metav1.ConditionTrue, "NoRoom", standing.Turn{Position: 7}.String())
	w.settle()
	w.wantWrites("when it waits", "patch TrainJob status")
	w.hear(standing.Waiting, metav1.ConditionFalse, "Placed", "")
	place := standing.Place{Nodes: 2, Domain: "rack-1", Quality: 1}
	w.hear(standing.Placed, metav1.ConditionTrue, "Placed", place.String())
	w.settle()
	w.wantWrites("when it is placed", "patch TrainJob status")
	w.settle()
	w.wantWrites("when nothing changed")

	status := w.job().Status
	since := metav1.NewTime(w.clock.Now())
	want := &trainerv1alpha1.Placement{Domain: "rack-1", Nodes: 2, Quality: "1.00", Since: &since}
	if diff := cmp.Diff(want, status.Scheduling.Placement); diff != "" {
		t.Errorf("placement (-want +got):\n%s", diff)
	}
	if len(status.Conditions) > 0 {
		t.Errorf("status.conditions %v of a job that was never suspended", status.Conditions)
	}
	for _, want := range []string{"Warning NoRoom needs 2 nodes; 1 is free", "Normal Placed " + place.String(), ""} {
		if got := w.event(); got != want {
			t.Errorf("event %q, want %q", got, want)
		}
	}
}

// Events are deleted after an hour: a job that waits for longer gets another one.
func TestEvents_LongWaitIsRepeated(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.start()
	w.hear(standing.Waiting, metav1.ConditionTrue, "NoRoom", "needs 2 nodes; 1 is free")
	if left := w.settle().RequeueAfter; left != 50*time.Minute {
		t.Errorf("comes back after %v, want 50 minutes", left)
	}
	w.event()
	for _, step := range []struct {
		at   time.Duration
		want string
	}{
		{49 * time.Minute, ""},
		{50 * time.Minute, "Warning NoRoom needs 2 nodes; 1 is free"},
		{50 * time.Minute, ""},
		{100 * time.Minute, "Warning NoRoom needs 2 nodes; 1 is free"},
	} {
		w.clock.SetTime(created().Add(step.at))
		if left := w.settle().RequeueAfter; left <= 0 || left > 50*time.Minute {
			t.Errorf("at %v it comes back after %v", step.at, left)
		}
		if got := w.event(); got != step.want {
			t.Errorf("event %q at %v, want %q", got, step.at, step.want)
		}
	}
}

// A quota may refuse all pods of a job: its owner gets an Event, but not for the moment at the start without pods.
func TestEvents_MissingPodsReportedAfterAMinute(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.start()
	const why = "Warning NoPods no pod of node is created: see the Events of Job train-node-0 and of JobSet train"
	const unseen = "Warning NotSeen the scheduler has not looked at it yet; it does once all its pods exist"
	for _, step := range []struct {
		at   time.Duration
		pods int32
		want string
		left time.Duration
	}{
		{0, 0, "", time.Minute},
		{59 * time.Second, 0, "", time.Second},
		{time.Minute, 0, why, 50 * time.Minute},
		{2 * time.Minute, 0, "", 49 * time.Minute},
		{51 * time.Minute, 0, why, 50 * time.Minute},
		{60 * time.Minute, 1, "", time.Minute},
		{61 * time.Minute, 1, unseen, 50 * time.Minute},
	} {
		w.clock.SetTime(created().Add(step.at))
		w.say(func(status *jobsetv1alpha2.JobSetStatus) {
			status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{{Name: "node", Active: step.pods}}
		})
		left := w.settle().RequeueAfter
		if got := w.event(); got != step.want || left != step.left {
			t.Errorf("event %q at %v, want %q; comes back after %v, want %v", got, step.at, step.want, left, step.left)
		}
	}
}

// A job that is deleted while it waits is not remembered, or a controller that runs for months would grow with every
// one.
func TestReminders_OfJobsThatAreGone(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
	w.start()
	w.hear(standing.Waiting, metav1.ConditionTrue, "NoRoom", "needs 2 nodes; 1 is free")
	w.settle()
	if got := w.Reminded(); got != 1 {
		t.Fatalf("%d jobs are remembered, want the one that waits", got)
	}
	if err := w.Client.Delete(t.Context(), w.job()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if got := w.Reminded(); got != 0 {
		t.Errorf("%d jobs that are gone are remembered", got)
	}
}

// status.conditions holds upstream's three types and nothing else, in every phase of a life: Kueue reads it, and the
// SDK takes any entry for "not running".
func TestConditions_AreUpstreamsThree(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
	seen := map[string]bool{}
	look := func(phase string) {
		t.Helper()
		w.settle()
		for _, condition := range w.job().Status.Conditions {
			seen[condition.Type] = true
			switch condition.Type {
			case trainerv1alpha1.TrainJobSuspended, trainerv1alpha1.TrainJobComplete, trainerv1alpha1.TrainJobFailed:
			default:
				t.Errorf("%s: status.conditions has %s", phase, condition.Type)
			}
		}
	}
	look("suspended")
	w.change(func(job *trainerv1alpha1.TrainJob) { job.Spec.Suspend = new(false) })
	look("resumed")
	for _, step := range []struct {
		phase, kind string
		status      metav1.ConditionStatus
	}{
		{"waiting", standing.Waiting, metav1.ConditionTrue},
		{"queued", standing.Queued, metav1.ConditionTrue},
		{"placed", standing.Placed, metav1.ConditionTrue},
		{"preempted", schedulingv1beta1.DisruptionTarget, metav1.ConditionTrue},
		{"vacated", standing.Placed, metav1.ConditionFalse},
	} {
		w.hear(step.kind, step.status, "Because", "of the test")
		look(step.phase)
	}
	w.say(func(status *jobsetv1alpha2.JobSetStatus) { status.Restarts = 1 })
	look("started again")
	w.finish(w.clock.Now())
	look("complete")
	if !seen[trainerv1alpha1.TrainJobSuspended] || !seen[trainerv1alpha1.TrainJobComplete] {
		t.Errorf("the life had conditions %v only", seen)
	}
}

// Kubeflow's SDK shows a job's Events, and knows of no status Suspended.
func TestEvents_ReportSuspension(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(suspend(true)))
	w.settle()
	w.settle()
	if event := w.anyEvent(); event != "Normal Suspended its owner suspended it" {
		t.Errorf("event %q", event)
	}
	if event := w.anyEvent(); event != "" {
		t.Errorf("event %q of a job that stays suspended", event)
	}
	w.change(suspend(false))
	w.settle()
	w.settle() // as when its JobSet has changed
	w.change(suspend(true))
	w.settle()
	for event := w.anyEvent(); ; event = w.anyEvent() {
		if event == "" {
			t.Fatal("the second suspension is not told")
		}
		if event == "Normal Suspended its owner suspended it" {
			return
		}
	}
}

// At a deadline the JobSet is deleted at once, and the scheduler reports the last words of a rank. Another process of
// the controller may read these.
func TestDeadline_OwnerSeesLastWords(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob(deadline(60)))
	w.start()
	w.clock.SetTime(created().Add(61 * time.Second))
	w.settle()
	if w.jobSet() != nil || w.podGroup() == nil {
		t.Fatalf("JobSet %v, want it gone at once and its group for a while", w.jobSet())
	}
	w.restart()
	w.clock.SetTime(created().Add(70 * time.Second))
	words := standing.Failure{
		Rank:      0,
		Pod:       "train-node-0-0-x7k2p",
		Node:      "n1",
		Container: "node",
		ExitCode:  143,
		Reason:    "Error",
		Message:   "step 12\nwaiting for rank 1",
	}
	w.hear(standing.RankFailed, metav1.ConditionTrue, "Error", words.String())
	w.settle()
	if event := w.event(); event != "Warning RankFailed "+words.String() {
		t.Errorf("event %q", event)
	}
	status := w.job().Status
	if failure := status.Scheduling.LastFailure; failure == nil || failure.Message != words.Message ||
		*failure.ExitCode != 143 {
		t.Errorf("last failure %v, want the words of rank 0", failure)
	}
	if failed := meta.FindStatusCondition(
		status.Conditions,
		trainerv1alpha1.TrainJobFailed,
	); failed.Reason != trainerv1alpha1.ReasonDeadlineExceeded {
		t.Errorf("the job failed because of %s", failed.Reason)
	}
	w.settle()
	if event := w.event(); event != "" {
		t.Errorf("event %q again", event)
	}
}
