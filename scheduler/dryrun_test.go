package scheduler_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/scheduler"
	"github.com/lockstep-project/lockstep/scheduler/timing"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// ghosts is a cluster in which a gang without room was looked at by preemption last, and has a reservation, when the first nodes of
// the scheduler's list are deleted.
func ghosts(t *testing.T) (*cluster, *waiting.Queue, map[string][]*corev1.Pod) {
	t.Helper()
	c := &cluster{Clientset: fake.NewClientset(), bound: make(map[string]string)}
	c.PrependReactor("create", "pods", c.bind)
	var plain []string
	for i := range 12 {
		node := cliques(1, 1)[0].DeepCopy()
		node.Name = fmt.Sprintf("a-plain%d", i)
		node.Labels[corev1.LabelHostname] = node.Name
		node.Labels["example.com/plain"] = "true"
		delete(node.Status.Allocatable, gpu)
		plain = append(plain, node.Name)
		if err := c.Tracker().Add(node); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range cliques(1, 4) {
		if err := c.Tracker().Add(node); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	registry, queue := scheduler.Plugins(timing.With(clock.RealClock{}))
	c.launch(ctx, t, c, shipped(t), registry)

	gangs := make(map[string][]*corev1.Pod)
	for _, of := range []struct {
		name     string
		size     int
		priority int32
	}{{"busy", 2, 10}, {"low", 1, 0}, {"head", 4, 5}} {
		group, pods := gang(of.name, of.size, "")
		prioritize(group, pods, of.priority)
		gangs[of.name] = pods
		c.add(t, group, pods)
		if of.name != "head" {
			c.waitBound(t, pods)
		}
	}
	c.waitRejected(t, "head")
	if len(queue.Leases()) == 0 {
		t.Fatal("the head has no reservation: the scene is wrong")
	}
	for _, name := range plain {
		if err := c.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(300 * time.Millisecond) // the scheduler has seen it
	return c, queue, gangs
}

func prioritize(group *schedulingv1beta1.PodGroup, pods []*corev1.Pod, priority int32) {
	group.Spec.Priority = &priority
	for _, p := range pods {
		p.Spec.Priority = &priority
	}
}

// The first node of the scheduler's list is deleted while a gang waits that preemption looked at last: the gang starts, and gives its
// reservation back.
func TestGangPlacement_FirstNodeGoes(t *testing.T) {
	c, queue, gangs := ghosts(t)
	c.end(t, gangs["busy"])
	c.end(t, gangs["low"])
	c.waitBound(t, gangs["head"])
	if leases := queue.Leases(); len(leases) > 0 {
		t.Errorf("%s runs, and still has a reservation", leases[0].Owner)
	}
}

// After that the next gang without room gets a reservation, and a later one does not pass it.
func TestGangPlacement_NoGhostHasTheReservation(t *testing.T) {
	c, queue, gangs := ghosts(t)
	c.end(t, gangs["busy"])
	c.end(t, gangs["low"])
	c.waitBound(t, gangs["head"])
	next, pods := gang("next", 3, "")
	c.add(t, next, pods)
	c.waitRejected(t, "next")
	if leases := queue.Leases(); len(leases) != 1 || leases[0].Owner.Name != "next" {
		t.Error("the next gang without room has no reservation")
	}
}
