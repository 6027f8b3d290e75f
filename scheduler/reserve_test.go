package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/topology"
)

// endsIn says when a gang is expected to end.
func endsIn(group *schedulingv1beta1.PodGroup, left time.Duration) *schedulingv1beta1.PodGroup {
	metav1.SetMetaDataAnnotation(&group.ObjectMeta, topology.AnnotationExpectedEnd,
		time.Now().Add(left).UTC().Format(time.RFC3339))
	return group
}

// busy is a clique of four nodes, on the last three of which gangs of one run for an hour, and a large gang that waits for all.
func busy(t *testing.T) (c *cluster, runs [][]*corev1.Pod, large []*corev1.Pod) {
	t.Helper()
	objects := as(cliques(1, 4)...)
	for n := 1; n < 4; n++ {
		group, members := running(fmt.Sprint("runs-", n), 0, nodeName(0, n))
		objects = slices.Concat(objects, as(endsIn(group, time.Hour)), as(members...))
		runs = append(runs, members)
	}
	c = listed(t, objects...)
	group, large := gang("large", 4, "clique")
	queuedAt(group, 1)
	c.add(t, group, large)
	c.waitRejected(t, "large")
	return c, runs, large
}

// small is a gang of one node that comes after the large one.
func small(name string, second int) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group, members := gang(name, 1, "")
	queuedAt(group, second)
	return group, members
}

// Small gangs keep coming, and each would take the node that the last one left. The large one, which was before them, starts as
// soon as those have ended that ran when it came.
func TestALargeGangIsNotOvertaken(t *testing.T) {
	const reservations = "lockstep_scheduler_reservations_total"
	before := counted(t, reservations, "kept")
	c, runs, large := busy(t)
	if why := c.waitRejected(
		t,
		"large",
	); !strings.Contains(
		why,
		"a place is reserved for it in fabric.0, expected to be free at ",
	) {
		t.Errorf("it waits for: %s", why)
	}
	var stream []*corev1.Pod
	for i := range 6 {
		group, members := small(fmt.Sprint("small-", i), 10+i)
		c.add(t, group, members)
		stream = append(stream, members...)
		if i%2 == 1 {
			c.end(t, runs[i/2])
		}
		time.Sleep(100 * time.Millisecond)
	}
	if got := c.waitBound(t, large); !slices.Equal(got, inClique(0, 4)) {
		t.Errorf("the large gang is on %v", got)
	}
	c.nobodyBound(t, stream)
	if got := counted(t, reservations, "kept") - before; got != 1 {
		t.Errorf("%v reservations were kept, want 1", got)
	}
	c.end(t, large)
	c.waitBound(t, stream[:4])
}

// Who ends before the place is needed delays nobody; of whom nobody knows that does.
func TestWhoCannotDelayPasses(t *testing.T) {
	c, _, large := busy(t)
	unknown, waits := small("unknown", 10)
	long, waitsToo := small("long", 11)
	short, passes := small("short", 12)
	c.add(t, unknown, waits, endsIn(long, 2*time.Hour), waitsToo)
	c.waitRejected(t, "unknown")
	c.waitRejected(t, "long")
	c.add(t, endsIn(short, 10*time.Minute), passes)
	if got := c.waitBound(t, passes); got[0] != nodeName(0, 0) {
		t.Errorf("the short gang is on %v", got)
	}
	c.nobodyBound(t, slices.Concat(waits, waitsToo, large))
}

// Pods that are in no gang respect the place too, unless they are more important. When the large gang is gone, so is its place.
func TestSinglePodsRespectTheReservation(t *testing.T) {
	c, _, large := busy(t)
	idle, important := pod("idle", "1"), pod("important", "1")
	idle.Spec.RestartPolicy, important.Spec.RestartPolicy = corev1.RestartPolicyNever, corev1.RestartPolicyNever
	priority := int32(1000)
	important.Spec.Priority = &priority
	c.add(t, idle, important)
	c.waitBound(t, []*corev1.Pod{important})
	time.Sleep(500 * time.Millisecond)
	c.nobodyBound(t, []*corev1.Pod{idle})
	for _, p := range large {
		if err := c.CoreV1().Pods(namespace).Delete(t.Context(), p.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.SchedulingV1beta1().
		PodGroups(namespace).
		Delete(t.Context(), "large", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.end(t, []*corev1.Pod{important}) // something changes, as it always does
	c.waitBound(t, []*corev1.Pod{idle})
}

// A service keeps no place from others, be it a single pod or a gang: its end, which never comes, makes no room. One node of six runs
// it, a gang waits for all six, and ten small gangs that end run on the other five.
func TestReservation_ServiceGangKeepsNone(t *testing.T) {
	for name, service := range map[string]func() []any{
		"single pod": func() []any {
			p := pod("service", "4")
			p.Spec.NodeName, p.Spec.RestartPolicy = nodeName(0, 0), corev1.RestartPolicyAlways
			return []any{p}
		},
		"gang": func() []any {
			group, members := running("service", 0, nodeName(0, 0))
			for _, p := range members {
				p.Spec.RestartPolicy = corev1.RestartPolicyAlways
			}
			return append([]any{group}, members)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, cliques(1, 6))
			c.add(t, service()...)
			all, large := gang("all", 6, "clique")
			queuedAt(all, 1)
			c.add(t, all, large)
			c.waitRejected(t, "all")
			for i := range 10 {
				group, members := small(fmt.Sprint("small-", i), 10+i)
				c.add(t, endsIn(group, time.Minute), members)
				c.waitBound(t, members)
				c.end(t, members)
			}
			c.nobodyBound(t, large)
		})
	}
}
