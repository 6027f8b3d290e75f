package scheduler_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler"
	"github.com/lockstep-project/lockstep/scheduler/timing"
)

// One gang that waits for the whole fleet, one of whose nodes runs a job without a known end, stops no job with one.
//
//	n0: endless   n1 … n5: free   all: six nodes   small-0 … small-9: one node for five seconds each
func TestReservation_EndlessJobStopsNoShortOnes(t *testing.T) {
	group, members := on("endless", "", nodeName(0, 0))
	c := listed(t, slices.Concat(as(cliques(1, 6)...), as(group), as(members...))...)
	all, large := gang("all", 6, "clique")
	queuedAt(all, 1)
	c.add(t, all, large)
	c.waitRejected(t, "all")
	for i := range 10 {
		of, pods := small(fmt.Sprint("small-", i), 10+i)
		c.add(t, endsIn(of, 5*time.Second), pods)
		c.waitBound(t, pods)
		c.end(t, pods)
	}
	c.nobodyBound(t, large)
	c.end(t, members)
	c.waitBound(t, large)
}

// The pods of the first gang are deleted, as by a controller that suspends its job; its PodGroup stays. Its place is for others then.
func TestReservation_EndsWithTheMembers(t *testing.T) {
	c, _, large := busy(t)
	group, waits := small("gang", 10)
	single := pod("single", "1")
	single.Spec.RestartPolicy = corev1.RestartPolicyNever
	c.add(t, group, waits)
	c.waitRejected(t, "gang")
	c.end(t, large)
	c.waitBound(t, waits)
	c.end(t, waits)
	c.add(t, single)
	c.waitBound(t, []*corev1.Pod{single})
}

// What is above the minimum of an elastic gang, and pods of a group that is no gang, wait for their turn like all others. What the head
// may evict may use its place before the instant, and leaves then.
//
//	n0: elastic's first member   n1 … n4: busy   head: four nodes, first in the queue
func TestReservation_IsNotPassed(t *testing.T) {
	elastic := func(priority int32) func() (*schedulingv1beta1.PodGroup, []*corev1.Pod, []*corev1.Pod) {
		return func() (*schedulingv1beta1.PodGroup, []*corev1.Pod, []*corev1.Pod) {
			group, members := gang("others", 5, "")
			group.Spec.SchedulingPolicy.Gang.MinCount = 1
			raise(group, members, priority)
			members[0].Spec.NodeName = nodeName(0, 0)
			queuedAt(group, 30)
			return group, members[:1], members[1:]
		}
	}
	for name, of := range map[string]struct {
		make   func() (*schedulingv1beta1.PodGroup, []*corev1.Pod, []*corev1.Pod)
		yields bool
	}{
		"elastic":                   {make: elastic(0)},
		"elastic of lower priority": {make: elastic(-50), yields: true},
		"basic": {make: func() (*schedulingv1beta1.PodGroup, []*corev1.Pod, []*corev1.Pod) {
			group, members := gang("others", 4, "")
			group.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{Basic: basicPolicy()}
			for _, p := range members {
				p.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
			}
			return group, nil, members
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group, running, more := of.make()
			objects := slices.Concat(as(cliques(1, 5)...), as(group), as(running...))
			var busy [][]*corev1.Pod
			for n := 1; n < 5; n++ {
				runs, members := on(fmt.Sprint("busy-", n), "", nodeName(0, n))
				objects = slices.Concat(objects, as(endsIn(runs, time.Hour)), as(members...))
				busy = append(busy, members)
			}
			if running == nil { // its node stays busy for ever
				stays := pod("stays", "4")
				stays.Spec.NodeName, stays.Spec.RestartPolicy = nodeName(0, 0), corev1.RestartPolicyAlways
				objects = append(objects, stays)
			}
			c := listed(t, objects...)
			head, its := gang("head", 4, "clique")
			queuedAt(head, 1)
			c.add(t, head, its)
			c.waitRejected(t, "head")
			c.add(t, more)
			for _, members := range busy {
				c.end(t, members)
				time.Sleep(200 * time.Millisecond) // in which the others would take it
			}
			c.waitBound(t, its)
			if !of.yields { // else they used the place, and those with a node were evicted
				c.nobodyBound(t, more)
			}
		})
	}
}

// A busy node of the place is not ready for a second and a half. The place is the head's before and after: a later gang does not
// take the node that is free.
func TestReservation_OutlivesAFlappingNode(t *testing.T) {
	c, runs, large := busy(t)
	ready := func(status corev1.ConditionStatus, taints ...corev1.Taint) {
		c.change(t, nodeName(0, 2), func(n *corev1.Node) {
			n.Spec.Taints = taints
			n.Status.Conditions = []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.Now(),
			}}
		})
	}
	ready(corev1.ConditionUnknown, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	group, later := small("later", 10)
	c.add(t, group, later)
	c.waitRejected(t, "later")
	time.Sleep(1500 * time.Millisecond)
	ready(corev1.ConditionTrue)
	time.Sleep(300 * time.Millisecond)
	c.nobodyBound(t, later)
	for _, members := range runs {
		c.end(t, members)
	}
	c.waitBound(t, large)
	c.nobodyBound(t, later)
}

// fast is a clock that runs as many times as fast as the machine's.
type fast struct {
	*clocktesting.FakeClock

	times atomic.Int64
}

// AfterFunc calls back without the lock of the clock.
func (f *fast) AfterFunc(d time.Duration, do func()) clock.Timer {
	return f.FakeClock.AfterFunc(d, func() { go do() })
}

func newFast(ctx context.Context) *fast {
	f := &fast{FakeClock: clocktesting.NewFakeClock(time.Now())}
	f.times.Store(1)
	go func() {
		const tick = 10 * time.Millisecond
		for ctx.Err() == nil {
			time.Sleep(tick)
			f.Step(tick * time.Duration(f.times.Load()))
		}
	}()
	return f
}

// A node is lost, and its gang is evicted to start again elsewhere. Its job gives up; the PodGroup stays. After the grace, minutes
// that are seconds here, the place is free for others.
func TestReservation_OfAMoveExpires(t *testing.T) {
	group, members := on("train", "clique", "c0-n0", "c0-n1", "c0-n2", "c0-n3")
	c := unstarted(t, slices.Concat(as(cliques(2, 4)...), []runtime.Object{group}, as(members...))...)
	hurries := newFast(t.Context())
	c.launch(t.Context(), t, c, shipped(t), scheduler.Registry(timing.With(hurries)))
	c.lose(t, members[1:2], "c0-n1")
	c.add(t, again(members[1]))
	c.waitGone(t, []*corev1.Pod{members[0], members[2], members[3]})
	c.end(t, []*corev1.Pod{again(members[1])})
	late, others := gang("late", 4, "clique")
	late.CreationTimestamp = metav1.Now()
	c.add(t, late, others)
	c.waitRejected(t, "late")
	time.Sleep(time.Second)
	c.nobodyBound(t, others)
	hurries.times.Store(100)
	if got := c.waitBound(t, others); !slices.Equal(got, inClique(1, 4)) {
		t.Errorf("the gang is on %v", got)
	}
}
