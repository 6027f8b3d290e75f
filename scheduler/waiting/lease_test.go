//go:build !race

package waiting_test

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
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// One gang that waits for the whole fleet, one of whose nodes runs a job without a known end, stops no job with one.
//
//	n0: endless   n1 … n5: free   all: six nodes   small-0 … small-9: one node for five seconds each
func TestReservation_EndlessJobStopsNoShortOnes(t *testing.T) {
	t.Parallel()
	group, members := schedulertest.RunningGang("endless", "", schedulertest.NodeName(0, 0))
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 6), group, members)
	all, large := schedulertest.Gang("all", 6, "clique")
	schedulertest.SetQueuedAt(all, 1)
	c.Create(t, all, large)
	c.WaitRejected(t, "all")
	for i := range 10 {
		of, pods := small(fmt.Sprint("small-", i), 10+i)
		c.Create(t, schedulertest.SetExpectedEnd(of, 5*time.Second), pods)
		c.WaitBound(t, pods)
		c.DeletePods(t, pods)
	}
	c.ExpectUnbound(t, large)
	c.DeletePods(t, members)
	c.WaitBound(t, large)
}

// The pods of the first gang are deleted, as by a controller that suspends its job; its PodGroup stays. Its place is
// for others then.
func TestReservation_EndsWithTheMembers(t *testing.T) {
	t.Parallel()
	c, _, large := fullClique(t)
	group, waits := small("gang", 10)
	single := schedulertest.Pod("single", "1")
	single.Spec.RestartPolicy = corev1.RestartPolicyNever
	c.Create(t, group, waits)
	c.WaitRejected(t, "gang")
	c.DeletePods(t, large)
	c.WaitBound(t, waits)
	c.DeletePods(t, waits)
	c.Create(t, single)
	c.WaitBound(t, []*corev1.Pod{single})
}

// The waiting pods of an elastic gang are deleted, while others of it run. Its lease ends with them.
//
//	n0: elastic's first member   n1: half of it free, the other half for an hour
func TestReservation_EndsWithTheSurplus(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 2))
	ofHalf := func(p *corev1.Pod) { schedulertest.SetRequest(p, schedulertest.GPU, "2") }
	half, runs := schedulertest.GangWith("half", 1, "", ofHalf)
	runs[0].Spec.NodeName = schedulertest.NodeName(0, 1)
	schedulertest.SetRunning(half, runs, time.Hour, 0)
	elastic, members := schedulertest.Gang("elastic", 2, "")
	elastic.Spec.SchedulingPolicy.Gang.MinCount = 1
	members[0].Spec.NodeName = schedulertest.NodeName(0, 0)
	schedulertest.SetQueuedAt(elastic, 1)
	c.Create(t, schedulertest.SetExpectedEnd(half, time.Hour), runs, elastic, members)
	c.WaitRejected(t, "elastic")
	small, waits := schedulertest.GangWith("small", 1, "", ofHalf)
	schedulertest.SetQueuedAt(small, 10)
	c.Create(t, small, waits)
	c.WaitRejected(t, "small")
	c.DeletePods(t, members[1:])
	c.WaitBound(t, waits)
}

// A pod that another scheduler has bound takes a part of a leased node. The lease moves to a place that its owner can
// have.
//
//	n0: busy for an hour   n1: busy for two hours   n2: free   head: two nodes
func TestReservation_MovesWhenAnotherSchedulerBinds(t *testing.T) {
	t.Parallel()
	agent := schedulertest.Pod("agent", "1") // a tenant may bind a pod that names our scheduler
	for _, name := range []string{corev1.DefaultSchedulerName, agent.Spec.SchedulerName} {
		t.Run(name, func(t *testing.T) {
			bound := agent.DeepCopy()
			bound.Spec.SchedulerName = name
			movesWhenBound(t, bound)
		})
	}
}

func movesWhenBound(t *testing.T, agent *corev1.Pod) {
	t.Helper()
	objects := schedulertest.Objects(schedulertest.Cliques(1, 3)...)
	for n := range 2 {
		group, members := schedulertest.RunningGang(fmt.Sprint("runs-", n), "", schedulertest.NodeName(0, n))
		schedulertest.SetExpectedEnd(group, time.Duration(n+1)*time.Hour)
		objects = slices.Concat(objects, schedulertest.Objects(group), schedulertest.Objects(members...))
	}
	c := schedulertest.NewUnstartedCluster(t, objects)
	queue := c.StartWithQueue(t)
	head, waits := schedulertest.Gang("head", 2, "")
	c.Create(t, head, waits)
	c.WaitRejected(t, "head")
	leasesOn := func(n int) bool {
		leases := queue.Leases()
		return len(leases) == 1 && leases[0].Room[schedulertest.NodeName(0, n)] != nil
	}
	if !leasesOn(0) || !leasesOn(2) {
		t.Fatalf("leases are %+v", queue.Leases())
	}
	agent.Spec.NodeName = schedulertest.NodeName(0, 2)
	agent.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent", Controller: new(true),
	}}
	c.Create(t, agent)
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return leasesOn(1) && !leasesOn(2), nil })
	if err != nil {
		t.Errorf("leases are %+v", queue.Leases())
	}
}

// The surplus of an elastic gang, and pods of a group that is no gang, wait for their turn like all others. Units that
// the head may evict may use its place before the instant, and leave then.
//
//	n0: elastic's first member   n1 … n4: busy   head: four nodes, first in the queue
func TestReservation_IsNotPassed(t *testing.T) {
	elastic := func(priority int32) func() (*schedulingv1beta1.PodGroup, []*corev1.Pod, []*corev1.Pod) {
		return func() (*schedulingv1beta1.PodGroup, []*corev1.Pod, []*corev1.Pod) {
			group, members := schedulertest.Gang("others", 5, "")
			group.Spec.SchedulingPolicy.Gang.MinCount = 1
			schedulertest.SetPriority(group, members, priority)
			members[0].Spec.NodeName = schedulertest.NodeName(0, 0)
			schedulertest.SetQueuedAt(group, 30)
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
			group, members := schedulertest.Gang("others", 4, "")
			group.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{Basic: &schedulingv1beta1.BasicSchedulingPolicy{}}
			for _, p := range members {
				p.CreationTimestamp = metav1.NewTime(time.Now().Add(time.Hour))
			}
			return group, nil, members
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			group, running, more := of.make()
			objects := slices.Concat(
				schedulertest.Objects(schedulertest.Cliques(1, 5)...),
				schedulertest.Objects(group),
				schedulertest.Objects(running...),
			)
			var busy [][]*corev1.Pod
			for n := 1; n < 5; n++ {
				runs, members := schedulertest.RunningGang(fmt.Sprint("busy-", n), "", schedulertest.NodeName(0, n))
				objects = slices.Concat(
					objects,
					schedulertest.Objects(schedulertest.SetExpectedEnd(runs, time.Hour)),
					schedulertest.Objects(members...),
				)
				busy = append(busy, members)
			}
			if running == nil { // its node stays busy for ever
				stays := schedulertest.Pod("stays", "4")
				stays.Spec.NodeName, stays.Spec.RestartPolicy = schedulertest.NodeName(0, 0), corev1.RestartPolicyAlways
				objects = append(objects, stays)
			}
			c := schedulertest.NewCluster(t, objects)
			head, its := schedulertest.Gang("head", 4, "clique")
			schedulertest.SetQueuedAt(head, 1)
			c.Create(t, head, its)
			c.WaitRejected(t, "head")
			c.Create(t, more)
			for _, members := range busy {
				c.DeletePods(t, members)
				time.Sleep(200 * time.Millisecond) // in which the others would take it
			}
			c.WaitBound(t, its)
			if !of.yields { // else they used the place, and those with a node were evicted
				c.ExpectUnbound(t, more)
			}
		})
	}
}

// A busy node of the place is not ready for a second and a half. The place is the head's before and after: a later gang
// does not take the node that is free.
func TestReservation_OutlivesAFlappingNode(t *testing.T) {
	t.Parallel()
	c, runs, large := fullClique(t)
	ready := func(status corev1.ConditionStatus, taints ...corev1.Taint) {
		c.UpdateNode(t, schedulertest.NodeName(0, 2), func(n *corev1.Node) {
			n.Spec.Taints = taints
			n.Status.Conditions = []corev1.NodeCondition{{
				Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.Now(),
			}}
		})
	}
	ready(corev1.ConditionUnknown, corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule})
	group, later := small("later", 10)
	c.Create(t, group, later)
	c.WaitRejected(t, "later")
	time.Sleep(1500 * time.Millisecond)
	ready(corev1.ConditionTrue)
	time.Sleep(300 * time.Millisecond)
	c.ExpectUnbound(t, later)
	for _, members := range runs {
		c.DeletePods(t, members)
	}
	c.WaitBound(t, large)
	c.ExpectUnbound(t, later)
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

// A node is lost, and its gang is evicted to start again elsewhere. Its job gives up; the PodGroup stays. After the
// grace, minutes that are seconds here, the place is free for others.
func TestReservation_OfAMoveExpires(t *testing.T) {
	t.Parallel()
	group, members := schedulertest.RunningGang("train", "clique", "c0-n0", "c0-n1", "c0-n2", "c0-n3")
	c := schedulertest.NewUnstartedCluster(t, schedulertest.Cliques(2, 4), group, members)
	hurries := newFast(t.Context())
	c.StartScheduler(t.Context(), t, c, schedulertest.Config(t), schedulertest.Registry(hurries))
	c.LoseNodes(t, members[1:2], "c0-n1")
	c.Create(t, schedulertest.Recreated(members[1]))
	c.WaitDeleted(t, []*corev1.Pod{members[0], members[2], members[3]})
	c.DeletePods(t, []*corev1.Pod{schedulertest.Recreated(members[1])})
	late, others := schedulertest.Gang("late", 4, "clique")
	late.CreationTimestamp = metav1.Now()
	c.Create(t, late, others)
	c.WaitRejected(t, "late")
	time.Sleep(time.Second)
	c.ExpectUnbound(t, others)
	hurries.times.Store(100)
	if got := c.WaitBound(t, others); !slices.Equal(got, schedulertest.CliqueNodes(1, 4)) {
		t.Errorf("the gang is on %v", got)
	}
}

// The place that a gang moves to is given back when its job ends.
func TestReservation_OfAMoveEndsWithTheJob(t *testing.T) {
	t.Parallel()
	group, members := schedulertest.RunningGang("train", "clique", "c0-n0", "c0-n1", "c0-n2", "c0-n3")
	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 4), group, members)
	c.LoseNodes(t, members[1:2], "c0-n1")
	c.Create(t, schedulertest.Recreated(members[1]))
	c.WaitDeleted(t, []*corev1.Pod{members[0], members[2], members[3]})
	c.DeletePods(t, []*corev1.Pod{schedulertest.Recreated(members[1])})
	late, others := schedulertest.Gang("late", 4, "clique")
	late.CreationTimestamp = metav1.Now()
	c.Create(t, late, others)
	c.WaitRejected(t, "late")
	c.MarkEnded(t, "train")
	if got := c.WaitBoundFor(t, others, 20*time.Second); !slices.Equal(got, schedulertest.CliqueNodes(1, 4)) {
		t.Errorf("the gang is on %v", got)
	}
}
