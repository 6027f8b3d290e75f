package situation_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/topology/standing"
)

func TestSchedulingStatus_PreemptedGang(t *testing.T) {
	t.Parallel()
	s := newTimeline()
	s.tell("made", nil)
	s.tell("its pods exist", func() { s.ready(0) })
	s.tell("no room", func() { s.waits("needs 4 nodes; 2 are free", standing.Turn{Position: 3}) })
	s.tell("nothing new", nil)
	s.tell("reserved", func() {
		s.waits(
			"needs 4 nodes; 2 are free",
			standing.Turn{Position: 1, Reserved: "su-1", Start: "2026-11-24T11:00:00Z"},
		)
	})
	s.tell("placed", func() { s.placed("su-1") })
	s.tell("ready", func() { s.ready(1) })
	s.tell("preempted", func() {
		s.says(
			schedulingv1beta1.DisruptionTarget,
			metav1.ConditionTrue,
			"PreemptionByScheduler",
			"preempted by gang ns/urgent",
		)
		s.says(standing.Placed, metav1.ConditionFalse, "PreemptionByScheduler", "preempted by gang ns/urgent")
		s.ready(0)
	})
	s.tell("waits again", func() { s.waits("needs 4 nodes; 3 are free", standing.Turn{Position: 1}) })
	s.tell("placed elsewhere", func() { s.placed("su-2") })
	s.tell("ready again", func() { s.ready(1) })
	s.tell("complete", func() {
		meta.SetStatusCondition(&s.known.Job.Status.Conditions, metav1.Condition{
			Type: trainerv1alpha1.TrainJobComplete, Status: metav1.ConditionTrue, Message: "all jobs are complete",
		})
	})
	s.want(t, `
== made
Waiting (no pod of node is created: see the Events of Job job-node-0 and of JobSet job) waits since 10:01 +Queued
== its pods exist
Waiting (the scheduler has not looked at it yet; it does once all its pods exist) waits since 10:01 +Queued
== no room
Waiting (needs 4 nodes; 2 are free) waits since 10:01 position 3 +Queued
   Warning NoRoom: needs 4 nodes; 2 are free
== nothing new
Waiting (needs 4 nodes; 2 are free) waits since 10:01 position 3 +Queued
== reserved
Waiting (needs 4 nodes; 2 are free) waits since 10:01 position 1 starts 11:00 in su-1 +Queued
== placed
Starting (not ready yet: node 0 of 1) on 4 nodes of su-1 q=0.50 since 10:06 -Queued +Placed
   Normal Placed: 4 nodes in su-1, quality 0.50
== ready
Running on 4 nodes of su-1 q=0.50 since 10:06 -Queued +Placed
== preempted
Waiting (preempted by gang ns/urgent) waits since 10:08 +Queued -Placed +Preempted
   Warning Preempted: preempted by gang ns/urgent
== waits again
Waiting (needs 4 nodes; 3 are free) waits since 10:08 position 1 +Queued -Placed +Preempted
   Warning NoRoom: needs 4 nodes; 3 are free
== placed elsewhere
Starting (not ready yet: node 0 of 1) on 4 nodes of su-2 q=0.50 since 10:10 -Queued +Placed -Preempted +Moved
   Normal Placed: 4 nodes in su-2, quality 0.50
   Normal Moved: from su-1 to su-2
== ready again
Running on 4 nodes of su-2 q=0.50 since 10:10 -Queued +Placed -Preempted +Moved
== complete
Complete (all jobs are complete) on 4 nodes of su-2 q=0.50 since 10:10 -Queued -Placed -Preempted +Moved
`)
}

func TestSchedulingStatus_JobCannotResume(t *testing.T) {
	t.Parallel()
	s := newTimeline()
	groups := s.known.Groups
	s.known.Groups = nil
	s.tell("suspended by its owner", func() { s.known.Job.Spec.Suspend = new(true) })
	s.tell("in a queue of Kueue's", func() {
		s.known.Job.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "research"}
	})
	s.tell("cannot be resumed", func() {
		s.known.Job.Spec.Suspend, s.known.Hindrance = new(false), "field is immutable: spec.x"
		meta.SetStatusCondition(&s.known.Job.Status.Conditions, metav1.Condition{
			Type: trainerv1alpha1.TrainJobSuspended, Status: metav1.ConditionTrue,
		})
	})
	s.tell("resumed", func() {
		s.known.Hindrance, s.known.Groups = "", groups
	})
	s.want(t, `
== suspended by its owner
Suspended (its owner suspended it)
   Normal Suspended: its owner suspended it
== in a queue of Kueue's
Suspended (Kueue keeps it suspended until queue research admits it)
   Normal Suspended: Kueue keeps it suspended until queue research admits it
== cannot be resumed
Blocked (field is immutable: spec.x) +NotResumed
== resumed
Waiting (no pod of node is created: see the Events of Job job-node-0 and of JobSet job) waits since 10:04 -NotResumed +Queued
`)
}

// A gang does not wait for nodes while its data is fetched, however long that takes.
func TestSchedulingStatus_GangFetchesData(t *testing.T) {
	t.Parallel()
	s := newTimeline()
	s.initializes()
	s.tell("made", nil)
	s.tell("the initializer is pending", func() {
		s.pods(jobsetv1alpha2.ReplicatedJobStatus{Name: "dataset-initializer", Active: 1})
	})
	s.tell("it fetches", func() {
		s.pods(jobsetv1alpha2.ReplicatedJobStatus{Name: "dataset-initializer", Active: 1, Ready: 1})
	})
	s.tell("the data is there", func() {
		s.pods(jobsetv1alpha2.ReplicatedJobStatus{Name: "dataset-initializer", Succeeded: 1})
	})
	s.tell("the gang's pods exist", func() { s.ready(0) })
	s.tell("no room", func() { s.waits("needs 4 nodes; 2 are free", standing.Turn{Position: 1}) })
	s.tell("placed", func() { s.placed("su-1") })
	s.tell("preempted", func() {
		s.says(schedulingv1beta1.DisruptionTarget, metav1.ConditionTrue, "PreemptionByScheduler", "preempted by ns/a")
		s.says(standing.Placed, metav1.ConditionFalse, "PreemptionByScheduler", "preempted by ns/a")
	})
	s.tell("all starts again and fetches", func() {
		s.pods(jobsetv1alpha2.ReplicatedJobStatus{Name: "dataset-initializer", Active: 1, Ready: 1})
	})
	s.want(t, `
== made
Waiting (no pod of dataset-initializer is created: see the Events of Job job-dataset-initializer-0 and of JobSet job) waits since 10:01 +Queued
== the initializer is pending
Starting (not ready yet: dataset-initializer 0 of 1, node 0 of 1) -Queued
== it fetches
Starting (not ready yet: dataset-initializer 0 of 1, node 0 of 1) -Queued
== the data is there
Waiting (no pod of node is created: see the Events of Job job-node-0 and of JobSet job) waits since 10:04 +Queued
== the gang's pods exist
Waiting (the scheduler has not looked at it yet; it does once all its pods exist) waits since 10:04 +Queued
== no room
Waiting (needs 4 nodes; 2 are free) waits since 10:04 position 1 +Queued
   Warning NoRoom: needs 4 nodes; 2 are free
== placed
Starting (not ready yet: node 0 of 1) on 4 nodes of su-1 q=0.50 since 10:07 -Queued +Placed
   Normal Placed: 4 nodes in su-1, quality 0.50
== preempted
Waiting (preempted by ns/a) waits since 10:08 +Queued -Placed +Preempted
   Warning Preempted: preempted by ns/a
== all starts again and fetches
Starting (not ready yet: dataset-initializer 0 of 1, node 0 of 1) -Queued -Placed +Preempted
`)
}

// A second gang that starts when the first one is ready does not wait for nodes before that.
func TestSchedulingStatus_GangStartsAfterAnother(t *testing.T) {
	t.Parallel()
	s := newTimeline()
	launcher := jobsetv1alpha2.ReplicatedJob{Name: "launcher", Replicas: 1, DependsOn: []jobsetv1alpha2.DependsOn{
		{Name: "node", Status: jobsetv1alpha2.DependencyReady},
	}}
	launcher.Template.Spec.Template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("launch")}
	s.known.JobSet.Spec.ReplicatedJobs = append(s.known.JobSet.Spec.ReplicatedJobs, launcher)
	s.known.Groups = append(s.known.Groups, schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Name: "launch"}})
	s.tell("the first waits", func() {
		s.ready(0)
		s.waits("needs 4 nodes; 2 are free", standing.Turn{Position: 1})
	})
	s.tell("the first is placed", func() { s.placed("su-1") })
	s.tell("the first is ready", func() { s.ready(1) })
	s.want(t, `
== the first waits
Waiting (needs 4 nodes; 2 are free) waits since 10:01 position 1 +Queued
   Warning NoRoom: needs 4 nodes; 2 are free
== the first is placed
Starting (not ready yet: node 0 of 1, launcher 0 of 1) -Queued
== the first is ready
Waiting (no pod of launcher is created: see the Events of Job job-launcher-0 and of JobSet job) waits since 10:03 +Queued
`)
}

// Without a group neither the place of the pods nor their wait is known.
func TestSchedulingStatus_JobWithoutGang(t *testing.T) {
	t.Parallel()
	s := newTimeline()
	s.known.Groups = nil
	s.known.JobSet.Spec.ReplicatedJobs[1].Template.Spec.Template.Spec.SchedulingGroup = nil
	s.tell("fetches its data", func() {
		s.known.JobSet.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{
			{Name: "dataset-initializer", Active: 1},
		}
	})
	s.tell("ready", func() { s.ready(1) })
	s.want(t, `
== fetches its data
Starting (not ready yet: dataset-initializer 0 of 1, node 0 of 1)
== ready
Running
`)
}

// The domain of nodes that the scheduler's filters chose is not known, nor whether a gang stayed in it.
func TestSchedulingStatus_MovedGangLeavesTopology(t *testing.T) {
	t.Parallel()
	s := newTimeline()
	preempted := func() {
		s.says(schedulingv1beta1.DisruptionTarget, metav1.ConditionTrue, "PreemptionByScheduler", "preempted by ns/a")
		s.says(standing.Placed, metav1.ConditionFalse, "PreemptionByScheduler", "preempted by ns/a")
	}
	s.ready(0)
	s.tell("placed", func() { s.placed("su-1") })
	s.tell("preempted", preempted)
	s.tell("moved", func() { s.placed("su-2") })
	s.tell("its nodes are replaced", func() {
		s.says(standing.Placed, metav1.ConditionTrue, "Placed", standing.Place{}.String())
	})
	s.tell("preempted", preempted)
	s.tell("placed anywhere", func() {
		s.placed("su-2")
		s.says(standing.Placed, metav1.ConditionTrue, "Placed", standing.Place{}.String())
	})
	s.want(t, `
== placed
Starting (not ready yet: node 0 of 1) on 4 nodes of su-1 q=0.50 since 10:01 +Placed
   Normal Placed: 4 nodes in su-1, quality 0.50
== preempted
Waiting (preempted by ns/a) waits since 10:02 -Placed +Preempted +Queued
   Warning Preempted: preempted by ns/a
== moved
Starting (not ready yet: node 0 of 1) on 4 nodes of su-2 q=0.50 since 10:03 +Placed -Preempted -Queued +Moved
   Normal Placed: 4 nodes in su-2, quality 0.50
   Normal Moved: from su-1 to su-2
== its nodes are replaced
Starting (not ready yet: node 0 of 1) on 0 nodes of  q= since 10:03 +Placed -Preempted -Queued +Moved
   Normal Placed: nodes that the scheduler's filters chose
== preempted
Waiting (preempted by ns/a) waits since 10:05 -Placed +Preempted +Queued +Moved
   Warning Preempted: preempted by ns/a
== placed anywhere
Starting (not ready yet: node 0 of 1) on 0 nodes of  q= since 10:06 +Placed -Preempted -Queued +Moved
   Normal Placed: nodes that the scheduler's filters chose
`)
}

func TestSchedulingStatus_LongReasonIsCut(t *testing.T) {
	t.Parallel()
	s := newTimeline()
	s.tell("a long story", func() { s.waits(strings.Repeat("n", 5000), standing.Turn{Position: 1}) })
	status := s.known.Job.Status.Scheduling
	if len(status.Reason) != 1024 || len(status.Conditions[0].Message) != 1024 {
		t.Errorf("the reason has %d bytes, the condition %d", len(status.Reason), len(status.Conditions[0].Message))
	}
}

// An elastic job runs with the ranks that it needs, and its status has the number of ready ones of all.
func TestOf_AnElasticJob(t *testing.T) {
	t.Parallel()
	s := newTimeline()
	ready := func(ranks int32) {
		s.ready(0) // a Job is ready when all its pods are
		s.known.Elastic = &trainerv1alpha1.ElasticStatus{MinNodes: 2, MaxNodes: 4, ReadyNodes: ranks}
	}
	s.tell("no room", func() { ready(0); s.waits("needs 2 nodes; 1 is free", standing.Turn{Position: 1}) })
	s.tell("placed", func() { s.placed("su-1") })
	s.tell("one rank is ready", func() { ready(1) })
	s.tell("as many as it needs", func() { ready(2) })
	s.tell("all", func() { ready(4); s.ready(1) })
	s.tell("one leaves", func() { ready(3) })
	s.want(t, `
== no room
Waiting (needs 2 nodes; 1 is free) waits since 10:01 position 1 +Queued
   Warning NoRoom: needs 2 nodes; 1 is free
== placed
Starting (not ready yet: node 0 of 2 to 4 ranks) on 4 nodes of su-1 q=0.50 since 10:02 -Queued +Placed
   Normal Placed: 4 nodes in su-1, quality 0.50
== one rank is ready
Starting (not ready yet: node 1 of 2 to 4 ranks) on 4 nodes of su-1 q=0.50 since 10:02 -Queued +Placed
== as many as it needs
Running on 4 nodes of su-1 q=0.50 since 10:02 -Queued +Placed
== all
Running on 4 nodes of su-1 q=0.50 since 10:02 -Queued +Placed
== one leaves
Running on 4 nodes of su-1 q=0.50 since 10:02 -Queued +Placed
`)
}
