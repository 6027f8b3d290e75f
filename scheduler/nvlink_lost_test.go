package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/topology"
)

// nvlinkRuns is a gang that runs with channels in the first nodes of a clique, and the nodes in its ComputeDomain.
func nvlinkRuns(
	nodes []*corev1.Node, name string, at ...string,
) (*schedulingv1beta1.PodGroup, []*corev1.Pod, []runtime.Object) {
	group, members := on(name, topology.LabelClique, at...)
	claims := channelsOf(members, "domain-of-"+name)
	holdsChannels(members, claims)
	labels(nodes, domainLabel, "domain-of-"+name, at...)
	return group, members, claims
}

// Two cliques of six; a gang of four runs in the second. A node of its clique loses its label, then the gang a member: that one comes back
// in the clique of the others, not on the node without it. A fresh gang does not go there either.
func TestANodeThatLostItsCliqueIsNotUsed(t *testing.T) {
	nodes := cliques(2, 6)
	group, members, claims := nvlinkRuns(nodes, "train", inClique(1, 4)...)
	fresh, others, theirs := nvlinkGang("fresh", 6)
	back := again(members[0])
	its := channelsOf([]*corev1.Pod{back}, "domain-of-train")
	c := listed(t, slices.Concat(linked(nodes), []runtime.Object{group}, as(members...), claims, theirs, its)...)
	c.collects(t)
	c.change(t, "c1-n4", func(n *corev1.Node) { delete(n.Labels, topology.LabelClique) })
	c.change(t, "c0-n3", func(n *corev1.Node) { delete(n.Labels, topology.LabelClique) })
	c.lose(t, members[:1], "c1-n0")
	c.add(t, back)
	if got := c.waitBound(t, []*corev1.Pod{back}); got[0] != "c1-n5" {
		t.Errorf("the lost member is on %s", got[0])
	}
	c.add(t, fresh, others)
	if why := c.waitRejected(t, "fresh"); !strings.Contains(why, "nearest fabric.0: 5 of 6") ||
		!strings.Contains(why, "2 nodes outside every clique (no label)") {
		t.Errorf("the fresh gang waits for: %s", why)
	}
	c.change(t, "c0-n3", func(n *corev1.Node) { n.Labels[topology.LabelClique] = "fabric.0" })
	c.waitBound(t, others)
}

// The node of a survivor lost its clique. Nobody can say that the others reach it, so the lost member does not come back beside it: all of
// the gang leaves, to start again in one clique.
func TestAGangWhoseSurvivorLostItsCliqueMoves(t *testing.T) {
	nodes := cliques(2, 6)
	group, members, claims := nvlinkRuns(nodes, "train", inClique(1, 4)...)
	back := again(members[0])
	its := channelsOf([]*corev1.Pod{back}, "domain-of-train")
	c := listed(t, slices.Concat(linked(nodes), []runtime.Object{group}, as(members...), claims, its)...)
	c.collects(t)
	c.change(t, "c1-n2", func(n *corev1.Node) { delete(n.Labels, topology.LabelClique) })
	c.lose(t, members[:1], "c1-n0")
	c.add(t, back)
	if why := c.waitRejected(
		t,
		"train",
	); !strings.Contains(
		why,
		"running member train-2 is where the gang's rules do not allow it",
	) {
		t.Errorf("it waits for: %s", why)
	}
	c.waitGone(t, members[1:])
	reasons, _ := c.ended("train")
	if reasons["train-2"] != "GangMoved" {
		t.Errorf("the survivors left for %v", reasons)
	}
}

// A spare of the clique is still in another ComputeDomain when a gang loses a member. The member waits for it; the gang does not move.
func TestALostMemberWaitsForANodeInAnotherComputeDomain(t *testing.T) {
	nodes := cliques(2, 4)
	group, members, claims := nvlinkRuns(nodes, "train", inClique(1, 3)...)
	labels(nodes, domainLabel, "gone", "c1-n3")
	back := again(members[0])
	its := channelsOf([]*corev1.Pod{back}, "domain-of-train")
	c := listed(t, slices.Concat(linked(nodes), []runtime.Object{group}, as(members...), claims, its)...)
	c.collects(t)
	c.lose(t, members[:1], "c1-n0")
	c.add(t, back)
	if why := c.waitRejected(t, "train"); !strings.Contains(why, "1 node is still in another ComputeDomain") {
		t.Errorf("it waits for: %s", why)
	}
	time.Sleep(500 * time.Millisecond)
	c.change(t, "c1-n3", func(n *corev1.Node) { delete(n.Labels, domainLabel) })
	if got := c.waitBound(t, []*corev1.Pod{back}); got[0] != "c1-n3" {
		t.Errorf("the lost member is on %s", got[0])
	}
	if reasons, _ := c.ended("train"); len(reasons) > 0 {
		t.Errorf("survivors left: %v", reasons)
	}
}

// An important gang ends one that holds the channels of a clique. It does not start on nodes that are in the other's ComputeDomain still,
// nor does it end anybody else meanwhile.
func TestPreemptionWaitsForTheComputeDomainToGo(t *testing.T) {
	nodes := cliques(2, 4)
	group, members, claims := nvlinkRuns(nodes, "young", inClique(1, 4)...)
	since(group, members, time.Minute, 0)
	old, others, theirs := nvlinkRuns(nodes, "old", inClique(0, 4)...)
	high, its, itsClaims := nvlinkGang("high", 4)
	raise(high, its, 1000)
	c := listed(t, slices.Concat(linked(nodes), []runtime.Object{group, old}, as(members...), claims,
		as(others...), theirs, itsClaims)...)
	c.collects(t)
	c.add(t, high, its)
	c.waitGone(t, members)
	time.Sleep(3 * time.Second) // in which it is asked again, and more than once
	c.nobodyBound(t, its)
	for _, name := range inClique(1, 4) {
		c.change(t, name, func(n *corev1.Node) { delete(n.Labels, domainLabel) })
	}
	if got := c.waitBound(t, its); !slices.Equal(got, inClique(1, 4)) {
		t.Errorf("the important gang is on %v", got)
	}
	for _, pod := range others {
		if _, err := c.CoreV1().Pods(namespace).Get(t.Context(), pod.Name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s went too: %v", pod.Name, err)
		}
	}
}
