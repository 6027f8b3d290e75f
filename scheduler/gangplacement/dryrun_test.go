package gangplacement_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/scheduler/waiting"
)

// ghosts is a cluster in which a gang without room was looked at by preemption last, and has a reservation, when the
// first nodes of the scheduler's list are deleted.
func ghosts(t *testing.T) (*schedulertest.Cluster, *waiting.Queue, map[string][]*corev1.Pod) {
	t.Helper()
	var plain []string
	nodes := schedulertest.Cliques(1, 4)
	for i := range 12 {
		node := schedulertest.Cliques(1, 1)[0].DeepCopy()
		node.Name = fmt.Sprintf("a-plain%d", i)
		node.Labels[corev1.LabelHostname] = node.Name
		node.Labels["example.com/plain"] = "true"
		delete(node.Status.Allocatable, schedulertest.GPU)
		plain, nodes = append(plain, node.Name), append(nodes, node)
	}
	c := schedulertest.NewUnstartedCluster(t, nodes)
	queue := c.StartWithQueue(t)

	gangs := make(map[string][]*corev1.Pod)
	for _, of := range []struct {
		name     string
		size     int
		priority int32
	}{{"busy", 2, 10}, {"low", 1, 0}, {"head", 4, 5}} {
		group, pods := schedulertest.Gang(of.name, of.size, "")
		schedulertest.SetPriority(group, pods, of.priority)
		gangs[of.name] = pods
		c.Create(t, group, pods)
		if of.name != "head" {
			c.WaitBound(t, pods)
		}
	}
	c.WaitRejected(t, "head")
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

// The first node of the scheduler's list is deleted while a gang waits that preemption looked at last: the gang starts,
// and gives its reservation back.
func TestGangPlacement_FirstNodeGoes(t *testing.T) {
	t.Parallel()
	c, queue, gangs := ghosts(t)
	c.DeletePods(t, gangs["busy"])
	c.DeletePods(t, gangs["low"])
	c.WaitBound(t, gangs["head"])
	if leases := queue.Leases(); len(leases) > 0 {
		t.Errorf("%s runs, and still has a reservation", leases[0].Owner)
	}
}

// After that the next gang without room gets a reservation, and a later one does not pass it.
func TestGangPlacement_NoGhostHasTheReservation(t *testing.T) {
	t.Parallel()
	c, queue, gangs := ghosts(t)
	c.DeletePods(t, gangs["busy"])
	c.DeletePods(t, gangs["low"])
	c.WaitBound(t, gangs["head"])
	next, pods := schedulertest.Gang("next", 3, "")
	c.Create(t, next, pods)
	c.WaitRejected(t, "next")
	if leases := queue.Leases(); len(leases) != 1 || leases[0].Owner.Name != "next" {
		t.Error("the next gang without room has no reservation")
	}
}
