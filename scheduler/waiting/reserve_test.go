//go:build !race

package waiting_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
)

// fullClique is a clique of four nodes, with gangs of one that run on the last three for an hour, and a large gang that
// waits for all.
func fullClique(t *testing.T) (c *schedulertest.Cluster, runs [][]*corev1.Pod, large []*corev1.Pod) {
	t.Helper()
	objects := schedulertest.Objects(schedulertest.Cliques(1, 4)...)
	for n := 1; n < 4; n++ {
		group, members := schedulertest.BoundGang(fmt.Sprint("runs-", n), 0, schedulertest.NodeName(0, n))
		objects = slices.Concat(
			objects,
			schedulertest.Objects(schedulertest.SetExpectedEnd(group, time.Hour)),
			schedulertest.Objects(members...),
		)
		runs = append(runs, members)
	}
	c = schedulertest.NewCluster(t, objects)
	group, large := schedulertest.Gang("large", 4, "clique")
	schedulertest.SetQueuedAt(group, 1)
	c.Create(t, schedulertest.SetExpectedEnd(group, 5*time.Minute), large) // so it is due before all others
	c.WaitRejected(t, "large")
	return c, runs, large
}

// small is a gang of one node that arrives after the large one.
func small(name string, second int) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group, members := schedulertest.Gang(name, 1, "")
	schedulertest.SetQueuedAt(group, second)
	return group, members
}

// Small gangs arrive continually, and each would take the node that the last one left. The large gang, which precedes
// them, starts as soon as the gangs that ran at its arrival have ended.
func TestReservation_LargeGangIsNotOvertaken(t *testing.T) {
	const reservations = "lockstep_scheduler_reservations_total"
	before := schedulertest.Metric(t, reservations, "kept")
	c, runs, large := fullClique(t)
	why := c.WaitRejected(t, "large")
	if !strings.Contains(why, "a place is reserved for it in fabric.0, expected to be free at ") {
		t.Errorf("it waits for: %s", why)
	}
	var stream []*corev1.Pod
	for i := range 6 {
		group, members := small(fmt.Sprint("small-", i), 10+i)
		c.Create(t, group, members)
		stream = append(stream, members...)
		if i%2 == 1 {
			c.DeletePods(t, runs[i/2])
		}
		time.Sleep(100 * time.Millisecond)
	}
	if got := c.WaitBound(t, large); !slices.Equal(got, schedulertest.CliqueNodes(0, 4)) {
		t.Errorf("the large gang is on %v", got)
	}
	c.ExpectUnbound(t, stream)
	if got := schedulertest.Metric(t, reservations, "kept") - before; got != 1 {
		t.Errorf("%v reservations were kept, want 1", got)
	}
	c.DeletePods(t, large)
	c.WaitBound(t, stream[:4])
}

// A gang that ends before the place is needed delays no other; one with an unknown end does.
func TestBackfill_PassesOnlyWithoutDelay(t *testing.T) {
	t.Parallel()
	c, _, large := fullClique(t)
	unknown, waits := small("unknown", 10)
	long, waitsToo := small("long", 11)
	short, passes := small("short", 12)
	c.Create(t, unknown, waits, schedulertest.SetExpectedEnd(long, 2*time.Hour), waitsToo)
	c.WaitRejected(t, "unknown")
	c.WaitRejected(t, "long")
	c.Create(t, schedulertest.SetExpectedEnd(short, 10*time.Minute), passes)
	if got := c.WaitBound(t, passes); got[0] != schedulertest.NodeName(0, 0) {
		t.Errorf("the short gang is on %v", got)
	}
	c.ExpectUnbound(t, slices.Concat(waits, waitsToo, large))
}

// Pods that are in no gang respect the place too, unless their priority is higher. The place ends when the large gang
// is deleted.
func TestReservation_SinglePodsRespectIt(t *testing.T) {
	t.Parallel()
	c, _, large := fullClique(t)
	idle, important := schedulertest.Pod("idle", "1"), schedulertest.Pod("important", "1")
	idle.Spec.RestartPolicy, important.Spec.RestartPolicy = corev1.RestartPolicyNever, corev1.RestartPolicyNever
	priority := int32(1000)
	important.Spec.Priority = &priority
	c.Create(t, idle, important)
	c.WaitBound(t, []*corev1.Pod{important})
	time.Sleep(500 * time.Millisecond)
	c.ExpectUnbound(t, []*corev1.Pod{idle})
	for _, p := range large {
		if err := c.CoreV1().
			Pods(schedulertest.Namespace).
			Delete(t.Context(), p.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.SchedulingV1beta1().
		PodGroups(schedulertest.Namespace).
		Delete(t.Context(), "large", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.DeletePods(t, []*corev1.Pod{important}) // something changes, as it always does
	c.WaitBound(t, []*corev1.Pod{idle})
}

// A service leads to no reservation, whether it is a single pod or a gang: it never ends, and so makes no room. One
// node of six runs it, a gang waits for all six, and ten small gangs that end run on the other five.
func TestReservation_ServiceGangKeepsNone(t *testing.T) {
	t.Parallel()
	for name, service := range map[string]func() []any{
		"single pod": func() []any {
			p := schedulertest.Pod("service", "4")
			p.Spec.NodeName, p.Spec.RestartPolicy = schedulertest.NodeName(0, 0), corev1.RestartPolicyAlways
			return []any{p}
		},
		"gang": func() []any {
			group, members := schedulertest.BoundGang("service", 0, schedulertest.NodeName(0, 0))
			for _, p := range members {
				p.Spec.RestartPolicy = corev1.RestartPolicyAlways
			}
			return append([]any{group}, members)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 6))
			c.Create(t, service()...)
			all, large := schedulertest.Gang("all", 6, "clique")
			schedulertest.SetQueuedAt(all, 1)
			c.Create(t, all, large)
			c.WaitRejected(t, "all")
			for i := range 10 {
				group, members := small(fmt.Sprint("small-", i), 10+i)
				c.Create(t, schedulertest.SetExpectedEnd(group, time.Minute), members)
				c.WaitBound(t, members)
				c.DeletePods(t, members)
			}
			c.ExpectUnbound(t, large)
		})
	}
}
