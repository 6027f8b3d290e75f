package situation_test

import (
	"testing"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/topology/standing"
)

// Another scheduler reports only that a group was placed.
func TestSchedulingStatus_OtherSchedulersGang(t *testing.T) {
	t.Parallel()
	s := newTimeline()
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
	s := newTimeline()
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
	s := newTimeline()
	s.tell("its pods exist", func() { s.ready(0) })
	s.tell("ready", func() { s.ready(1) })
	s.want(t, `
== its pods exist
Waiting (the scheduler has not looked at it yet; it does once all its pods exist) waits since 10:01 +Queued
== ready
Running -Queued
`)
}
