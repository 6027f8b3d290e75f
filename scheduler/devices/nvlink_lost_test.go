package devices_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// nvlinkRuns is a gang that runs with channels in the first nodes of a clique, and the nodes in its ComputeDomain.
func nvlinkRuns(
	nodes []*corev1.Node, name string, at ...string,
) (*schedulingv1beta1.PodGroup, []*corev1.Pod, []runtime.Object) {
	group, members := schedulertest.RunningGang(name, topology.LabelClique, at...)
	claims := channelsOf(members, "domain-of-"+name)
	holdsChannels(members, claims)
	labels(nodes, domainLabel, "domain-of-"+name, at...)
	return group, members, claims
}

// Two cliques of six; a gang of four runs in the second. A node of its clique loses its label, then the gang a member:
// that member returns in the clique of the others, not on the node without a label. A fresh gang does not use that node
// either.
func TestNVLink_NodeWithoutCliqueIsNotUsed(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(2, 6)
	group, members, claims := nvlinkRuns(nodes, "train", schedulertest.CliqueNodes(1, 4)...)
	fresh, others, theirs := nvlinkGang("fresh", 6)
	back := schedulertest.Recreated(members[0])
	its := channelsOf([]*corev1.Pod{back}, "domain-of-train")
	c := schedulertest.NewCluster(t, linked(nodes), group, members, claims, theirs, its)
	c.CollectClaims(t)
	c.UpdateNode(t, "c1-n4", func(n *corev1.Node) { delete(n.Labels, topology.LabelClique) })
	c.UpdateNode(t, "c0-n3", func(n *corev1.Node) { delete(n.Labels, topology.LabelClique) })
	c.LoseNodes(t, members[:1], "c1-n0")
	c.Create(t, back)
	if got := c.WaitBound(t, []*corev1.Pod{back}); got[0] != "c1-n5" {
		t.Errorf("the lost member is on %s", got[0])
	}
	c.Create(t, fresh, others)
	if why := c.WaitRejected(t, "fresh"); !strings.Contains(why, "nearest fabric.0: 5 of 6") ||
		!strings.Contains(why, "2 nodes outside every clique (no label)") {
		t.Errorf("the fresh gang waits for: %s", why)
	}
	c.UpdateNode(t, "c0-n3", func(n *corev1.Node) { n.Labels[topology.LabelClique] = "fabric.0" })
	c.WaitBound(t, others)
}

// The node of a survivor lost its clique. It is unknown whether the others reach it, so the lost member is not placed
// beside it: all of the gang leaves, to start again in one clique.
func TestNVLink_GangMovesWhenSurvivorLosesClique(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(2, 6)
	group, members, claims := nvlinkRuns(nodes, "train", schedulertest.CliqueNodes(1, 4)...)
	back := schedulertest.Recreated(members[0])
	its := channelsOf([]*corev1.Pod{back}, "domain-of-train")
	c := schedulertest.NewCluster(t, linked(nodes), group, members, claims, its)
	c.CollectClaims(t)
	c.UpdateNode(t, "c1-n2", func(n *corev1.Node) { delete(n.Labels, topology.LabelClique) })
	c.LoseNodes(t, members[:1], "c1-n0")
	c.Create(t, back)
	why := c.WaitRejected(t, "train")
	if !strings.Contains(why, "running member train-2 is where the gang's rules do not allow it") {
		t.Errorf("it waits for: %s", why)
	}
	c.WaitDeleted(t, members[1:])
	reasons, _ := c.Evictions("train")
	if reasons["train-2"] != "GangMoved" {
		t.Errorf("the survivors left for %v", reasons)
	}
}

// A spare of the clique is still in another ComputeDomain when a gang loses a member. The member waits for it; the gang
// does not move.
func TestComputeDomain_LostMemberWaitsForSpareNode(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(2, 4)
	group, members, claims := nvlinkRuns(nodes, "train", schedulertest.CliqueNodes(1, 3)...)
	labels(nodes, domainLabel, "gone", "c1-n3")
	back := schedulertest.Recreated(members[0])
	its := channelsOf([]*corev1.Pod{back}, "domain-of-train")
	c := schedulertest.NewCluster(t, linked(nodes), group, members, claims, its)
	c.CollectClaims(t)
	c.LoseNodes(t, members[:1], "c1-n0")
	c.Create(t, back)
	if why := c.WaitRejected(t, "train"); !strings.Contains(why, "1 node is still in another ComputeDomain") {
		t.Errorf("it waits for: %s", why)
	}
	time.Sleep(500 * time.Millisecond)
	c.UpdateNode(t, "c1-n3", func(n *corev1.Node) { delete(n.Labels, domainLabel) })
	if got := c.WaitBound(t, []*corev1.Pod{back}); got[0] != "c1-n3" {
		t.Errorf("the lost member is on %s", got[0])
	}
	if reasons, _ := c.Evictions("train"); len(reasons) > 0 {
		t.Errorf("survivors left: %v", reasons)
	}
}

// An important gang ends one that holds the channels of a clique. It does not start on nodes that are still in the
// other's ComputeDomain, nor does it evict another gang meanwhile.
func TestComputeDomain_PreemptorWaitsForRemoval(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(2, 4)
	group, members, claims := nvlinkRuns(nodes, "young", schedulertest.CliqueNodes(1, 4)...)
	schedulertest.SetRunning(group, members, time.Minute, 0)
	old, others, theirs := nvlinkRuns(nodes, "old", schedulertest.CliqueNodes(0, 4)...)
	high, its, itsClaims := nvlinkGang("high", 4)
	schedulertest.SetPriority(high, its, 1_001_000)
	c := schedulertest.NewCluster(t, linked(nodes), group, old, members, claims, others, theirs, itsClaims)
	c.CollectClaims(t)
	c.Create(t, high, its)
	c.WaitDeleted(t, members)
	time.Sleep(3 * time.Second) // in which it is asked again, and more than once
	c.ExpectUnbound(t, its)
	for _, name := range schedulertest.CliqueNodes(1, 4) {
		c.UpdateNode(t, name, func(n *corev1.Node) { delete(n.Labels, domainLabel) })
	}
	if got := c.WaitBound(t, its); !slices.Equal(got, schedulertest.CliqueNodes(1, 4)) {
		t.Errorf("the important gang is on %v", got)
	}
	for _, pod := range others {
		if _, err := c.CoreV1().
			Pods(schedulertest.Namespace).
			Get(t.Context(), pod.Name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s went too: %v", pod.Name, err)
		}
	}
}
