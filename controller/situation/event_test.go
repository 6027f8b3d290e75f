package situation_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/controller/situation"
	"github.com/lockstep-project/lockstep/topology/standing"
)

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
			known := newTimeline().known
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

// An estimate shifts each minute. The status has it, and no Event: the number of Events of a job is limited, and the
// next preemption would have none.
func TestSchedulingStatus_ShiftedEstimateIsNoEvent(t *testing.T) {
	t.Parallel()
	s := newTimeline()
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

// Pods that their namespace refuses need no patience: the Event with the reason is written at once, and again only for
// another reason.
func TestOf_RefusedPods(t *testing.T) {
	t.Parallel()
	s := newTimeline()
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
