//go:build !race

package gangplacement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// ends has the rank on the node end as its kubelet reports it.
func ends(t *testing.T, c *schedulertest.Cluster, members []*corev1.Pod, node string, change func(*corev1.PodStatus)) {
	t.Helper()
	at := slices.Index(c.WaitBound(t, members), node)
	if at < 0 {
		t.Fatalf("no rank of %s is on %s", members[0].Name, node)
	}
	pods := c.CoreV1().Pods(schedulertest.Namespace)
	pod, err := pods.Get(t.Context(), members[at].Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pod = pod.DeepCopy()
	pod.Status.Phase = corev1.PodFailed
	change(&pod.Status)
	if _, err := pods.UpdateStatus(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// refuseTwice has the kubelet of c0-n0 refuse ranks of two gangs of two, for a device that is broken. The scheduler
// sends the other ranks back.
func refuseTwice(t *testing.T, c *schedulertest.Cluster) {
	t.Helper()
	for i := range 2 {
		name := fmt.Sprint("refused-", i)
		group, members := schedulertest.Gang(name, 2, "clique")
		c.Create(t, group, members)
		boundReporting(t, c, members)
		ends(t, c, members, "c0-n0", func(s *corev1.PodStatus) { s.Reason = "UnexpectedAdmissionError" })
		c.WaitDeleted(t, members)
		groups := c.SchedulingV1beta1().PodGroups(schedulertest.Namespace)
		if err := groups.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// reporting has the kubelet of c0-n0 report other resources each time, until a condition holds: a node that refused a
// pod is suspected until it has changed.
func reporting(t *testing.T, c *schedulertest.Cluster, what string, isSo func() bool) {
	t.Helper()
	for i := range int64(600) { // a minute
		if isSo() {
			return
		}
		c.UpdateNode(t, "c0-n0", func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourceEphemeralStorage] = *resource.NewQuantity(i, resource.BinarySI)
		})
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("not so: " + what)
}

// boundReporting waits until all are bound.
func boundReporting(t *testing.T, c *schedulertest.Cluster, members []*corev1.Pod) {
	t.Helper()
	reporting(t, c, "all are bound", func() bool {
		return !slices.ContainsFunc(members, func(m *corev1.Pod) bool { return c.NodeOf(m.Name) == "" })
	})
}

// waitsForQuarantine creates a gang of two that waits for a node in quarantine. The scheduler hears of refusals by
// several handlers, and a gang that is made as soon as the refused one is sent back may start before the node has its
// strike: then it is deleted, and another one made.
func waitsForQuarantine(t *testing.T, c *schedulertest.Cluster) []*corev1.Pod {
	t.Helper()
	groups := c.SchedulingV1beta1().PodGroups(schedulertest.Namespace)
	for i := 0; ; i++ {
		group, members := schedulertest.Gang(fmt.Sprint("waits-", i), 2, "clique")
		c.Create(t, group, members)
		waits := false
		reporting(t, c, "it starts, or is told of the quarantine", func() bool {
			now, err := groups.Get(t.Context(), group.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			waits = slices.ContainsFunc(now.Status.Conditions, func(c metav1.Condition) bool {
				return strings.Contains(c.Message, "1 node barred by quarantine")
			})
			return waits || c.NodeOf(members[0].Name) != "" && c.NodeOf(members[1].Name) != ""
		})
		if waits {
			return members
		}
		c.DeletePods(t, members)
	}
}

// The kubelet of a node refused pods of two gangs. A gang that would fit with it waits, with the reason in its message;
// one that tolerates it starts there; and when an administrator has cleared it, the first one starts.
func TestGangPlacement_Quarantine(t *testing.T) {
	t.Parallel()
	other, holds := schedulertest.BoundGang("other", 0, "c0-n2")
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 3), other, holds)
	refuseTwice(t, c)
	two := waitsForQuarantine(t, c)
	looks, one := schedulertest.Gang("looks", 1, "clique")
	one[0].Spec.NodeSelector = map[string]string{corev1.LabelHostname: "c0-n0"}
	one[0].Spec.Tolerations = []corev1.Toleration{{Key: topology.KeyUnhealthy, Operator: corev1.TolerationOpExists}}
	c.Create(t, looks, one)
	boundReporting(t, c, one)
	c.DeletePods(t, one)
	for _, cordoned := range []bool{true, false} {
		c.UpdateNode(t, "c0-n0", func(n *corev1.Node) { n.Spec.Unschedulable = cordoned })
	}
	c.WaitBound(t, two)
}

// A gang that would have no place without the node, even if all other units left, has it.
func TestGangPlacement_QuarantineYieldsToNeed(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 2))
	refuseTwice(t, c)
	group, members := schedulertest.Gang("needs", 2, "clique")
	c.Create(t, group, members)
	boundReporting(t, c, members)
}

// failsTwice has a gang of two fail on c0-n0, start again in its place, and fail there again, minutes apart. It returns
// where it starts then. after is called with the ranks of each failure.
func failsTwice(t *testing.T, c *schedulertest.Cluster, reason string, after func([]*corev1.Pod)) []string {
	t.Helper()
	group, members := schedulertest.Gang("train", 2, "clique")
	c.Create(t, group, members)
	for try := range 2 {
		ends(t, c, members, "c0-n0", func(s *corev1.PodStatus) {
			end := metav1.NewTime(time.Now().Add(time.Duration(try-2) * 5 * time.Minute))
			s.ContainerStatuses = []corev1.ContainerStatus{{Name: "node", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: reason, FinishedAt: end},
			}}}
		})
		awaitReport(t, c, "train")
		after(members)
		for i, member := range members {
			pod := member.DeepCopy()
			pod.Name, pod.UID = pod.Name+"-again", types.UID(string(pod.UID)+"-again")
			members[i] = pod
		}
		c.Create(t, members)
	}
	return c.WaitBound(t, members)
}

// The third start of a gang that failed twice on a node is elsewhere, unless it has nowhere else to go, or the program
// says that it is its own fault.
func TestGangPlacement_Trial(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		nodes  int
		reason string
		want   string
	}{
		"elsewhere":            {3, "Error", "c0-n1 c0-n2"},
		"nowhere else":         {2, "Error", "c0-n0 c0-n1"},
		"the program's memory": {3, "OOMKilled", "c0-n0 c0-n1"},
	} {
		t.Run(name, func(t *testing.T) {
			c := schedulertest.NewCluster(t, schedulertest.Cliques(1, test.nodes))
			gone := func(members []*corev1.Pod) { c.DeletePods(t, members) }
			if got := strings.Join(failsTwice(t, c, test.reason, gone), " "); got != test.want {
				t.Errorf("it starts on %s, want %s", got, test.want)
			}
		})
	}
}

// A scheduler that begins judges the failed ranks that still exist as the last one did.
func TestGangPlacement_TrialOutlivesTheScheduler(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 3))
	kept := func(members []*corev1.Pod) {
		c.DeletePods(t, members[1:]) // the other rank: the first one has failed, and stays
		c.Restart(t)
	}
	if got := strings.Join(failsTwice(t, c, "Error", kept), " "); got != "c0-n1 c0-n2" {
		t.Errorf("it starts on %s, want c0-n1 c0-n2", got)
	}
}
