package situation_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	jobsetv1alpha2 "sigs.k8s.io/jobset/api/jobset/v1alpha2"

	trainerv1alpha1 "github.com/lockstep-project/lockstep/controller/api/v1alpha1"
	"github.com/lockstep-project/lockstep/controller/situation"
	"github.com/lockstep-project/lockstep/topology/standing"
)

// story is a job with a new status each minute.
type story struct {
	known situation.Known
	lines []string
}

// newStory begins with a gang of four pods that its owner has not suspended, and that the scheduler has not reported on.
func newStory() *story {
	jobSet := &jobsetv1alpha2.JobSet{}
	node := jobsetv1alpha2.ReplicatedJob{Name: "node", Replicas: 1}
	node.Template.Spec.Parallelism = new(int32(4))
	node.Template.Spec.Template.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: new("train")}
	jobSet.Spec.ReplicatedJobs = []jobsetv1alpha2.ReplicatedJob{{Name: "dataset-initializer", Replicas: 1}, node}
	jobSet.Name = "job"
	return &story{known: situation.Known{
		Job: &trainerv1alpha1.TrainJob{}, JobSet: jobSet,
		Groups: []schedulingv1beta1.PodGroup{{ObjectMeta: metav1.ObjectMeta{Name: "train"}}},
		Now:    time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC),
	}}
}

// tell lets a minute pass, in which something happens, and records the job's status and Events.
func (s *story) tell(what string, happens func()) {
	s.known.Now = s.known.Now.Add(time.Minute)
	if happens != nil {
		happens()
	}
	before := s.known.Job.Status.Scheduling
	after := situation.Of(s.known)
	s.known.Job.Status.Scheduling = after
	s.lines = append(s.lines, "== "+what, picture(after))
	for _, event := range situation.News(before, after) {
		s.lines = append(s.lines, fmt.Sprintf("   %s %s: %s", event.Type, event.Reason, event.Message))
	}
}

// picture prints a status on one line.
func picture(s *trainerv1alpha1.SchedulingStatus) string {
	parts := []string{string(s.Phase)}
	if s.Reason != "" {
		parts = append(parts, "("+s.Reason+")")
	}
	if s.WaitingSince != nil {
		parts = append(parts, "waits since "+s.WaitingSince.Format("15:04"))
	}
	if p := s.Placement; p != nil {
		parts = append(
			parts,
			fmt.Sprintf("on %d nodes of %s q=%s since %s", p.Nodes, p.Domain, p.Quality, p.Since.Format("15:04")),
		)
	}
	if q := s.Queue; q != nil {
		parts = append(parts, fmt.Sprintf("position %d", q.Position))
		if q.ExpectedStart != nil {
			parts = append(parts, "starts "+q.ExpectedStart.Format("15:04")+" in "+q.Reservation)
		}
	}
	for _, c := range s.Conditions {
		sign := map[metav1.ConditionStatus]string{metav1.ConditionTrue: "+", metav1.ConditionFalse: "-"}[c.Status]
		parts = append(parts, sign+c.Type)
	}
	return strings.Join(parts, " ")
}

// says has the scheduler set a condition of the group.
func (s *story) says(kind string, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&s.known.Groups[0].Status.Conditions, metav1.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(s.known.Now),
	})
}

// waits has the scheduler report that the gang waits, as package explanation does.
func (s *story) waits(message string, turn standing.Turn) {
	s.says(standing.Waiting, metav1.ConditionTrue, "NoRoom", message)
	s.says(standing.Queued, metav1.ConditionTrue, "NoRoom", turn.String())
	s.says(standing.Placed, metav1.ConditionFalse, "NoRoom", "the gang waits")
}

func (s *story) placed(domain string) {
	meta.RemoveStatusCondition(&s.known.Groups[0].Status.Conditions, schedulingv1beta1.DisruptionTarget)
	s.says(standing.Waiting, metav1.ConditionFalse, "Placed", "the gang has its nodes")
	s.says(standing.Queued, metav1.ConditionFalse, "Placed", "the gang does not wait")
	s.says(
		standing.Placed,
		metav1.ConditionTrue,
		"Placed",
		standing.Place{Nodes: 4, Domain: domain, Quality: 0.5}.String(),
	)
}

func (s *story) ready(ready int32) {
	s.known.JobSet.Status.ReplicatedJobsStatus = []jobsetv1alpha2.ReplicatedJobStatus{
		{Name: "dataset-initializer", Succeeded: 1}, {Name: "node", Ready: ready, Active: 1},
	}
}

func (s *story) want(t *testing.T, want string) {
	t.Helper()
	if diff := cmp.Diff(strings.Split(strings.TrimSpace(want), "\n"), s.lines); diff != "" {
		t.Errorf("the story (-want +got):\n%s", diff)
	}
}

func TestSchedulingStatus_PreemptedGang(t *testing.T) {
	t.Parallel()
	s := newStory()
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
	s := newStory()
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

// initializes has the trainer of the story wait until its data is fetched.
func (s *story) initializes() {
	s.known.JobSet.Spec.ReplicatedJobs[1].DependsOn = []jobsetv1alpha2.DependsOn{
		{Name: "dataset-initializer", Status: jobsetv1alpha2.DependencyComplete},
	}
}

// pods sets the JobSet's status of its pods.
func (s *story) pods(statuses ...jobsetv1alpha2.ReplicatedJobStatus) {
	s.known.JobSet.Status.ReplicatedJobsStatus = statuses
}

// A gang does not wait for nodes while its data is fetched, however long that takes.
func TestSchedulingStatus_GangFetchesData(t *testing.T) {
	t.Parallel()
	s := newStory()
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
	s := newStory()
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

// A cache lists the groups of a job in any order, and each list gives the same status, without an Event: of waiting
// gangs, the reason of the last one in the queue.
func TestOf_TheOrderOfGroupsSaysNothing(t *testing.T) {
	t.Parallel()
	group := func(name string, conditions ...metav1.Condition) schedulingv1beta1.PodGroup {
		return schedulingv1beta1.PodGroup{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Status: schedulingv1beta1.PodGroupStatus{Conditions: conditions},
		}
	}
	is := func(kind, reason, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
	}
	waits := func(message string, position int) []metav1.Condition {
		return []metav1.Condition{
			is(standing.Waiting, "NoRoom", message),
			is(standing.Queued, "NoRoom", standing.Turn{Position: position}.String()),
		}
	}
	placed := func(domain string) metav1.Condition {
		return is(standing.Placed, "Placed", standing.Place{Nodes: 2, Domain: domain, Quality: 1}.String())
	}
	for name, c := range map[string]struct {
		groups []schedulingv1beta1.PodGroup
		want   string
	}{
		"the last in the queue decides": {
			[]schedulingv1beta1.PodGroup{
				group("a", waits("a has no room", 2)...), group("b", waits("b has no room", 7)...),
				group("c", waits("c has no room", 4)...), group("d"), group("e", placed("su-1")),
			},
			"Waiting (b has no room) waits since 10:00 position 7 +Queued",
		},
		"of those without a position, the first by name": {
			[]schedulingv1beta1.PodGroup{
				group("b", is(schedulingv1beta1.DisruptionTarget, "PreemptionByScheduler", "preempted by b")),
				group("a", is(schedulingv1beta1.DisruptionTarget, "PreemptionByScheduler", "preempted by a")),
			},
			"Waiting (preempted by a) waits since 10:00 +Preempted +Queued",
		},
		"places are named in order": {
			[]schedulingv1beta1.PodGroup{group("b", placed("su-2")), group("a", placed("su-1")), group("c", placed("su-3"))},
			"Starting (not ready yet: node 0 of 1) on 6 nodes of su-1, su-2, su-3 q=1.00 since 00:00 +Placed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chance := rand.New(rand.NewPCG(1, 2))
			known := newStory().known
			known.Groups = c.groups
			known.Job.Status.Scheduling = situation.Of(known)
			for range 20 {
				known.Groups = slices.Clone(c.groups)
				chance.Shuffle(len(known.Groups), func(i, j int) {
					known.Groups[i], known.Groups[j] = known.Groups[j], known.Groups[i]
				})
				before := known.Job.Status.Scheduling
				after := situation.Of(known)
				if got := picture(after); got != c.want {
					t.Fatalf("it says\n%s, want\n%s", got, c.want)
				}
				if news := situation.News(before, after); len(news) > 0 || !cmp.Equal(before, after) {
					t.Fatalf("%v is told, and written: %s", news, cmp.Diff(before, after))
				}
			}
		})
	}
}

// Without a group neither the place of the pods nor their wait is known.
func TestSchedulingStatus_JobWithoutGang(t *testing.T) {
	t.Parallel()
	s := newStory()
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

// Another scheduler reports only that a group was placed.
func TestSchedulingStatus_OtherSchedulersGang(t *testing.T) {
	t.Parallel()
	s := newStory()
	s.tell("unschedulable", func() {
		s.says(
			schedulingv1beta1.PodGroupInitiallyScheduled,
			metav1.ConditionFalse,
			"Unschedulable",
			"0/4 nodes are available",
		)
	})
	s.tell("scheduled", func() {
		s.says(schedulingv1beta1.PodGroupInitiallyScheduled, metav1.ConditionTrue, "Scheduled", "")
	})
	s.want(t, `
== unschedulable
Waiting (0/4 nodes are available) waits since 10:01 +Queued
   Warning Unschedulable: 0/4 nodes are available
== scheduled
Starting (not ready yet: node 0 of 1) -Queued
`)
}

// Our scheduler may preempt gangs of another one, which places them again and leaves our condition unchanged. Ranks
// that are ready have nodes, and the eviction before that explains nothing any more.
func TestSchedulingStatus_OtherSchedulersPreemptedGang(t *testing.T) {
	t.Parallel()
	s := newStory()
	preempted := func(by string) {
		meta.RemoveStatusCondition(&s.known.Groups[0].Status.Conditions, schedulingv1beta1.DisruptionTarget)
		s.says(schedulingv1beta1.DisruptionTarget, metav1.ConditionTrue, "PreemptionByScheduler", "preempted by "+by)
		s.says(standing.Placed, metav1.ConditionFalse, "PreemptionByScheduler", "preempted by "+by)
		s.ready(0)
	}
	s.tell("scheduled", func() {
		s.ready(0)
		s.says(schedulingv1beta1.PodGroupInitiallyScheduled, metav1.ConditionTrue, "Scheduled", "")
	})
	s.tell("ready", func() { s.ready(1) })
	s.tell("preempted", func() { preempted("ns/a") })
	s.tell("ready again", func() { s.ready(1) })
	s.tell("nothing new", nil)
	s.tell("one rank is lost", func() { s.ready(0) })
	s.tell("preempted again", func() { preempted("ns/b") })
	s.want(t, `
== scheduled
Starting (not ready yet: node 0 of 1)
== ready
Running
== preempted
Waiting (preempted by ns/a) waits since 10:03 +Preempted +Queued
   Warning Preempted: preempted by ns/a
== ready again
Running -Preempted -Queued
== nothing new
Running -Preempted -Queued
== one rank is lost
Starting (not ready yet: node 0 of 1) -Preempted -Queued
== preempted again
Waiting (preempted by ns/b) waits since 10:07 +Preempted +Queued
   Warning Preempted: preempted by ns/b
`)
}

// A scheduler may set no conditions of groups. Ranks that are ready have nodes all the same.
func TestSchedulingStatus_SilentScheduler(t *testing.T) {
	t.Parallel()
	s := newStory()
	s.tell("its pods exist", func() { s.ready(0) })
	s.tell("ready", func() { s.ready(1) })
	s.want(t, `
== its pods exist
Waiting (the scheduler has not looked at it yet; it does once all its pods exist) waits since 10:01 +Queued
== ready
Running -Queued
`)
}

// An estimate shifts each minute. The status has it, and no Event: the number of Events of a job is limited, and the
// next preemption would have none.
func TestSchedulingStatus_ShiftedEstimateIsNoEvent(t *testing.T) {
	t.Parallel()
	s := newStory()
	for _, at := range []string{"2026-11-24T11:00:00Z", "2026-11-24T11:01:00Z"} {
		s.tell("estimated", func() {
			s.waits("no room; a place is reserved for it in su-1"+standing.EstimatedAt(at),
				standing.Turn{Position: 1, Reserved: "su-1", Start: at, Estimated: true})
		})
	}
	s.want(t, `
== estimated
Waiting (no room; a place is reserved for it in su-1, estimated to be free at 2026-11-24T11:00:00Z) waits since 10:01 position 1 starts 11:00 in su-1 +Queued
   Warning NoRoom: no room; a place is reserved for it in su-1
== estimated
Waiting (no room; a place is reserved for it in su-1, estimated to be free at 2026-11-24T11:01:00Z) waits since 10:01 position 1 starts 11:01 in su-1 +Queued
`)
}

// The domain of nodes that the scheduler's filters chose is not known, nor whether a gang stayed in it.
func TestSchedulingStatus_MovedGangLeavesTopology(t *testing.T) {
	t.Parallel()
	s := newStory()
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
	s := newStory()
	s.tell("a long story", func() { s.waits(strings.Repeat("n", 5000), standing.Turn{Position: 1}) })
	status := s.known.Job.Status.Scheduling
	if len(status.Reason) != 1024 || len(status.Conditions[0].Message) != 1024 {
		t.Errorf("the reason has %d bytes, the condition %d", len(status.Reason), len(status.Conditions[0].Message))
	}
}

// Pods that their namespace refuses need no patience: the Event with the reason is written at once, and again only for
// another reason.
func TestOf_RefusedPods(t *testing.T) {
	t.Parallel()
	s := newStory()
	s.known.Refused = map[string]string{"node": "namespace team enforces restricted"}
	s.tell("made", nil)
	s.tell("nothing new", nil)
	s.tell("the namespace lets them in", func() { s.known.Refused = nil })
	s.tell("its pods exist", func() { s.ready(0) })
	s.tell("the namespace would let no others in", func() {
		s.known.Refused = map[string]string{"node": "namespace team enforces restricted"}
	})
	s.want(t, `
== made
Waiting (namespace team enforces restricted) waits since 10:01 +Queued
   Warning PodsRefused: namespace team enforces restricted
== nothing new
Waiting (namespace team enforces restricted) waits since 10:01 +Queued
== the namespace lets them in
Waiting (no pod of node is created: see the Events of Job job-node-0 and of JobSet job) waits since 10:01 +Queued
== its pods exist
Waiting (the scheduler has not looked at it yet; it does once all its pods exist) waits since 10:01 +Queued
== the namespace would let no others in
Waiting (the scheduler has not looked at it yet; it does once all its pods exist) waits since 10:01 +Queued
`)
}

// An elastic job runs with the ranks that it needs, and its status has the number of ready ones of all.
func TestOf_AnElasticJob(t *testing.T) {
	t.Parallel()
	s := newStory()
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
