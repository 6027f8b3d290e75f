package scheduler_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clienttesting "k8s.io/client-go/testing"

	"github.com/lockstep-project/lockstep/topology"
)

// running are members of a gang that runs on the nodes, one on each.
func running(name string, priority int32, nodes ...string) (*schedulingv1beta1.PodGroup, []*corev1.Pod) {
	group, members := gang(name, len(nodes), "")
	raise(group, members, priority)
	for i, p := range members {
		p.Spec.NodeName = nodes[i]
	}
	return group, members
}

// lingers makes the deletion of pods take until they are ended: a preempted pod has its grace.
func (c *cluster) lingers() {
	store := &versioned{ObjectTracker: c.Tracker()}
	store.last.Store(1 << 40)
	c.PrependReactor("delete", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.DeleteAction).GetName()
		object, err := c.Tracker().Get(action.GetResource(), namespace, name)
		if err != nil {
			return true, nil, err
		}
		leaving := object.(*corev1.Pod).DeepCopy()
		now := metav1.Now()
		leaving.DeletionTimestamp = &now
		return true, nil, store.Update(action.GetResource(), leaving, namespace)
	})
}

// remove takes pods away whatever their grace.
func (c *cluster) remove(t *testing.T, pods []*corev1.Pod) {
	t.Helper()
	for _, p := range pods {
		if err := c.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("pods"), namespace, p.Name); err != nil {
			t.Fatal(err)
		}
	}
}

// waitNominated waits until every pod is nominated and returns the nodes, sorted.
func (c *cluster) waitNominated(t *testing.T, pods []*corev1.Pod) []string {
	t.Helper()
	nodes := make([]string, len(pods))
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 15*time.Second, true,
		func(context.Context) (bool, error) {
			for i, p := range pods {
				now, err := c.CoreV1().Pods(namespace).Get(t.Context(), p.Name, metav1.GetOptions{})
				if err != nil {
					return false, err
				}
				if nodes[i] = now.Status.NominatedNodeName; nodes[i] == "" {
					return false, nil
				}
			}
			return true, nil
		})
	if err != nil {
		t.Fatalf("not all members were nominated: %v", nodes)
	}
	slices.Sort(nodes)
	return nodes
}

// A gang preempts what runs on parts of two cliques and waits for its victims to end. Before they do, all of a third
// clique becomes free: it goes there, rank by rank, and what it was nominated to is free for others.
func TestBetterRoomThanWhatWasPreempted(t *testing.T) {
	x := []string{nodeName(1, 0), nodeName(1, 1), nodeName(2, 0), nodeName(2, 1)}
	important, stays := running("important", 2000,
		nodeName(1, 2), nodeName(1, 3), nodeName(2, 2), nodeName(2, 3))
	better, leaves := running("better", 2000, inClique(0, 4)...)
	low, victims := running("low", 0, x...)
	c := unstarted(t, slices.Concat(
		as(cliques(3, 4)...), as(important, better, low), as(stays...), as(leaves...), as(victims...))...)
	c.lingers()
	c.start(t)

	high, members := gang("high", 4, "")
	raise(high, members, 1000)
	c.add(t, high, members)
	if got := c.waitNominated(t, members); !slices.Equal(got, x) {
		t.Fatalf("the gang is nominated to %v, want its victims' %v", got, x)
	}
	c.remove(t, leaves)
	if got := c.waitBound(t, members); !slices.Equal(got, inClique(0, 4)) {
		t.Errorf("members by rank are on %v, want clique 0 in order", got)
	}

	c.remove(t, victims)
	next, late := gang("next", 4, "")
	c.add(t, next, late)
	got := c.waitBound(t, late)
	slices.Sort(got)
	if !slices.Equal(got, x) {
		t.Errorf("the next gang is on %v, want %v, to which nobody is nominated any more", got, x)
	}
}

// The victims on the preferred clique would have to go in vain: a service there that stays bears no member beside it.
func TestPreemptionFindsItsWayAroundARefusal(t *testing.T) {
	t.Parallel()
	noisy := service("noisy", nodeName(0, 2), map[string]string{"app": "noisy"})
	priority := int32(2000)
	noisy.Spec.Priority = &priority
	first, inVain := running("first", 0, inClique(0, 4)...)
	second, victims := running("second", 0, inClique(1, 4)...)
	c := listed(t, slices.Concat(
		as(cliques(2, 4)...), as(first, second), as(inVain...), as(victims...), as(noisy))...)

	high, members := ranked("high", 4, "clique", avoids("noisy"))
	raise(high, members, 1000)
	c.add(t, high, members)
	if got := c.waitBound(t, members); !slices.Equal(got, inClique(1, 4)) {
		t.Errorf("members by rank are on %v, want clique 1 in order", got)
	}
	for _, p := range inVain {
		if _, err := c.CoreV1().Pods(namespace).Get(t.Context(), p.Name, metav1.GetOptions{}); err != nil {
			t.Errorf("a pod was preempted in vain: %v", err)
		}
	}
}

// Whatever would go, services that stay bear no member beside them in either clique. The gang is tried again at the pace of
// the queue's timer (after 1, 2 and 4 s), not at that of a gang whose victims are going.
func TestPreemptionInVainIsNotRepeatedAllTheTime(t *testing.T) {
	objects := as(cliques(2, 4)...)
	for i := range 2 {
		noisy := service(fmt.Sprint("noisy-", i), nodeName(i, 2), map[string]string{"app": "noisy"})
		priority := int32(2000)
		noisy.Spec.Priority = &priority
		group, members := running(fmt.Sprint("low-", i), 0, inClique(i, 4)...)
		objects = slices.Concat(objects, as(noisy), as(group), as(members...))
	}
	c := listed(t, objects...)
	high, members := ranked("high", 4, "clique", avoids("noisy"))
	raise(high, members, 1000)
	before := counted(t, "lockstep_scheduler_decision_duration_seconds", "")
	c.add(t, high, members)
	c.waitRejected(t, "high")
	time.Sleep(8 * time.Second)
	// Five attempts at most, each with the question what would be.
	if n := counted(t, "lockstep_scheduler_decision_duration_seconds", "") - before; n > 10 {
		t.Errorf("%v decisions in 8 s", n)
	}
	c.nobodyBound(t, members)
}

// mixed is a fleet and gangs that wait for it: some fit, some do not, each in its own way.
func mixed() []runtime.Object {
	objects := as(cliques(6, 8)...)
	for i, p := range []string{nodeName(1, 3), nodeName(2, 0), nodeName(2, 5), nodeName(4, 7)} {
		user := service(fmt.Sprint("user-", i), p, nil)
		asks(user, gpu, "2")
		objects = append(objects, user)
	}
	for i, wish := range []struct {
		size  int
		gpus  string
		wants map[string]string
	}{
		{7, "4", map[string]string{topology.AnnotationRequiredTopology: "clique"}},
		{9, "4", map[string]string{topology.AnnotationRequiredTopology: "clique"}},
		{10, "2", nil},
		{6, "4", map[string]string{topology.AnnotationSpreadMax: "2", topology.AnnotationSpreadTopology: "clique"}},
		{5, "1", map[string]string{topology.AnnotationRequiredTopology: "clique"}},
		{8, "4", map[string]string{topology.AnnotationSegmentSize: "4", topology.AnnotationSegmentTopology: "clique"}},
		{4, "4", map[string]string{topology.AnnotationCommunication: "all-to-all"}},
	} {
		group, members := ranked(fmt.Sprint("gang-", i), wish.size, "", func(p *corev1.Pod) { asks(p, gpu, wish.gpus) })
		group.Annotations = wish.wants
		queuedAt(group, 20-i)
		objects = append(append(objects, group), as(members...)...)
	}
	return objects
}

// digest says where every pod is, in an order that says nothing else.
func (c *cluster) digest() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var lines []string
	for p, at := range c.bound {
		lines = append(lines, p+" "+at)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// digestOf is the digest once that many pods are bound.
func (c *cluster) digestOf(t *testing.T, bound int) string {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 15*time.Second, true,
		func(context.Context) (bool, error) { return strings.Count(c.digest(), "\n")+1 >= bound, nil })
	if err != nil {
		t.Fatalf("fewer than %d pods were bound: %s", bound, c.digest())
	}
	return c.digest()
}

func shuffled(objects []runtime.Object, seed uint64) []runtime.Object {
	rand.New(rand.NewPCG(seed, 7)).Shuffle(len(objects), func(i, j int) {
		objects[i], objects[j] = objects[j], objects[i]
	})
	return objects
}

func TestSameSnapshotSameResult(t *testing.T) {
	const bound = 40 // all gangs but the one of nine in a clique of eight
	first := listed(t, shuffled(mixed(), 0)...).digestOf(t, bound)
	for seed := range uint64(9) {
		if got := listed(t, shuffled(mixed(), seed+1)...).digestOf(t, bound); got != first {
			t.Fatalf("in order %d the pods are on\n%s\nand not on\n%s", seed+1, got, first)
		}
	}
}

// The same where the filters refused the plan, so that the framework chooses.
func TestSameSnapshotSameResultAfterARefusal(t *testing.T) {
	objects := func() []runtime.Object {
		noisy := service("noisy", nodeName(0, 2), map[string]string{"app": "noisy"})
		group, members := ranked("avoids", 5, "clique", avoids("noisy"))
		return slices.Concat(as(cliques(1, 8)...), as(noisy), as(group), as(members...))
	}
	first := listed(t, shuffled(objects(), 0)...).digestOf(t, 5)
	for seed := range uint64(9) {
		if got := listed(t, shuffled(objects(), seed+1)...).digestOf(t, 5); got != first {
			t.Fatalf("in order %d the pods are on\n%s\nand not on\n%s", seed+1, got, first)
		}
	}
}
