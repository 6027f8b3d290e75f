package trainjob_test

import (
	"context"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
)

// A gang of four runs, one member is lost, and the others become complete, one after the other. It needs as many as it
// has left; and all again when everything starts again.
func TestMinCount_ExcludesCompletedMembers(t *testing.T) {
	w := newFixture(t, gang(), torch(), trainJob())
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
		if step.scheduled {
			w.placed()
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

// jobReads counts the live reads of Jobs.
type jobReads struct {
	client.Reader

	count int
}

func (r *jobReads) Get(
	ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption,
) error {
	if _, isJob := object.(*batchv1.Job); isJob {
		r.count++
	}
	return r.Reader.Get(ctx, key, object, options...)
}

// A gang has two nodes in one Job, and three workers in three. Only the nodes' Job is read: the JobSet counts the
// workers.
func TestMinCount_ReadsNoJobsOfOneMember(t *testing.T) {
	w := newFixture(t, gang(), withWorkers(3), trainJob())
	w.settle()
	for name, succeeded := range map[string]int32{"node-0": 1, "worker-0": 1, "worker-1": 1, "worker-2": 0} {
		work := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "train-" + name}}
		work.Status.Succeeded = succeeded
		if err := w.Client.Create(t.Context(), work); err != nil {
			t.Fatal(err)
		}
	}
	if need := w.podGroup().Spec.SchedulingPolicy.Gang.MinCount; need != 5 {
		t.Fatalf("the gang needs %d members: the scene is wrong", need)
	}
	w.placed()
	w.say(func(status *jobsetv1alpha2.JobSetStatus) {
		status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{
			{Name: "node"}, {Name: "worker", Succeeded: 2},
		}
	})
	reads := &jobReads{Reader: w.Live}
	w.Live = reads
	w.settle()
	if need := w.podGroup().Spec.SchedulingPolicy.Gang.MinCount; need != 2 || reads.count != 1 {
		t.Errorf("the gang needs %d members after %d reads of Jobs, want 2 after 1", need, reads.count)
	}
}

// A gang of two nodes in one Job and two workers in two restarts as a whole after one node and one worker have
// succeeded. Members that succeeded in the earlier attempt are created again, so the gang needs all of them from the
// moment a Job has failed.
func TestMinCount_CountsNoMembersOfAnEarlierAttempt(t *testing.T) {
	failed := []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	for name, test := range map[string]struct {
		// restarts and failed are the JobSet's: it writes its count of failed Jobs once more with the next attempt.
		restarts, failed int32
		attempt          string
		deleted          bool
		conditions       []batchv1.JobCondition
		// complete is the number of workers' Jobs that the JobSet reports as complete.
		complete, want int32
	}{
		"a member is lost":              {complete: 1, attempt: "0", want: 2},
		"lost in the second attempt":    {complete: 1, restarts: 1, attempt: "1", want: 2},
		"its Job has failed":            {complete: 1, attempt: "0", conditions: failed, want: 3},
		"the restart was written":       {complete: 1, restarts: 1, failed: 1, attempt: "0", want: 4},
		"the earlier Job is still here": {restarts: 1, attempt: "0", want: 4},
		"the earlier Job is deleted":    {restarts: 1, attempt: "1", deleted: true, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, gang(), withWorkers(2), trainJob())
			w.settle()
			work := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "train-node-0", Finalizers: []string{metav1.FinalizerDeleteDependents},
				Labels: map[string]string{"jobset.sigs.k8s.io/restart-attempt": test.attempt},
			}}
			work.Status = batchv1.JobStatus{Succeeded: 1, Conditions: test.conditions}
			if err := w.Client.Create(t.Context(), work); err != nil {
				t.Fatal(err)
			}
			if test.deleted {
				if err := w.Client.Delete(t.Context(), work); err != nil {
					t.Fatal(err)
				}
			}
			w.placed()
			w.say(func(status *jobsetv1alpha2.JobSetStatus) {
				status.Restarts = test.restarts
				status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{
					{Name: "node", Failed: test.failed}, {Name: "worker", Succeeded: test.complete},
				}
			})
			w.settle()
			if got := w.podGroup().Spec.SchedulingPolicy.Gang.MinCount; got != test.want {
				t.Errorf("the gang needs %d members, want %d", got, test.want)
			}
		})
	}
}

// withWorkers returns the runtime with one-pod Jobs of workers beside its nodes.
func withWorkers(replicas int32) *trainerv1alpha1.ClusterTrainingRuntime {
	runtime := torch()
	worker := jobsetv1alpha2.ReplicatedJob{Name: "worker", Replicas: replicas}
	worker.Template.Spec.Template.Spec.Containers = []corev1.Container{{Name: "worker", Image: "example.com/w:1"}}
	runtime.Spec.Template.Spec.ReplicatedJobs = append(runtime.Spec.Template.Spec.ReplicatedJobs, worker)
	return runtime
}

// placed notes on the job's group that the scheduler has placed it.
func (w *fixture) placed() {
	w.t.Helper()
	group := w.podGroup()
	group.Status.Conditions = []metav1.Condition{
		{Type: schedulingv1beta1.PodGroupInitiallyScheduled, Status: metav1.ConditionTrue, Reason: "Scheduled"},
	}
	if err := w.Client.Update(w.t.Context(), group); err != nil {
		w.t.Fatal(err)
	}
}
