package scheduler_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/topology"
)

// inClique lists n nodes of a clique, in rank order.
func inClique(clique, n int) []string {
	nodes := make([]string, n)
	for i := range nodes {
		nodes[i] = nodeName(clique, i)
	}
	return nodes
}

func TestGangsArePlacedWholeInRankOrder(t *testing.T) {
	c := newCluster(t, cliques(4, 10))
	fits, members := gang("fits", 10, "clique")
	large, tooMany := gang("large", 11, "clique")
	single := pod("single", "1")
	c.add(t, large, tooMany, fits, members, single)

	if got := c.waitBound(t, members); !slices.Equal(got, inClique(0, 10)) {
		t.Errorf("members by rank are on %v, want %v", got, inClique(0, 10))
	}
	c.waitBound(t, []*corev1.Pod{single})
	if why := c.waitRejected(t, "large"); !strings.Contains(why, "needs 11 members in one clique") {
		t.Errorf("the gang that does not fit is told %q", why)
	}
	// Room elsewhere and a second attempt change nothing for half a gang.
	c.add(t, pod("later", "1"))
	c.waitBound(t, []*corev1.Pod{pod("later", "1")})
	for _, p := range tooMany {
		if at := c.nodeOf(p.Name); at != "" {
			t.Errorf("%s of the gang that does not fit is on %s", p.Name, at)
		}
	}
}

// Every wish of the design's table is kept on any PodGroup, whoever made it.
func TestWishesAreKept(t *testing.T) {
	for name, test := range map[string]struct {
		wishes map[string]string
		want   []string
	}{
		"segments": {
			map[string]string{topology.AnnotationSegmentSize: "3", topology.AnnotationSegmentTopology: "clique"},
			slices.Concat(inClique(0, 3), inClique(1, 3)),
		},
		"spread": {
			map[string]string{topology.AnnotationSpreadMax: "2", topology.AnnotationSpreadTopology: "clique"},
			slices.Concat(inClique(0, 2), inClique(1, 2), inClique(2, 2)),
		},
		"spares": {
			map[string]string{topology.AnnotationSpares: "2"},
			slices.Concat(inClique(0, 3), inClique(1, 3)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, cliques(3, 5))
			group, members := gang("wishing", 6, "")
			group.Annotations = test.wishes
			c.add(t, group, members)
			if got := c.waitBound(t, members); !slices.Equal(got, test.want) {
				t.Errorf("members by rank are on %v, want %v", got, test.want)
			}
		})
	}
}

// A wish that cannot be read, or kept by any fleet like this, keeps its gang waiting with that explanation. Others go on.
func TestWrongWishesAreExplained(t *testing.T) {
	c := newCluster(t, cliques(2, 5))
	for name, test := range map[string]struct {
		key, value, want string
	}{
		"unreadable": {topology.AnnotationSegmentSize, "four", topology.AnnotationSegmentSize + ` is "four"`},
		"unknown":    {topology.AnnotationPreferredTopology, "cage", "preferred level cage"},
		"homeless":   {topology.AnnotationSegmentSize, "4", "segment: it needs a level"},
	} {
		group, members := gang(name, 4, "clique")
		group.Annotations[test.key] = test.value
		c.add(t, group, members)
		if why := c.waitRejected(t, name); !strings.Contains(why, test.want) {
			t.Errorf("%s: the gang is told %q", name, why)
		}
	}
	group, members := gang("right", 4, "clique")
	c.add(t, group, members)
	c.waitBound(t, members)
}

// Gangs that do not fit are parked, and what becomes free starts the one that waits longest, then the next.
func TestFreedRoomStartsThoseThatWait(t *testing.T) {
	c := newCluster(t, cliques(1, 4))
	first, members := gang("first", 4, "clique")
	c.add(t, first, members)
	c.waitBound(t, members)
	var waiting [][]*corev1.Pod
	for i := range 6 {
		g, pods := gang(fmt.Sprintf("waits-%d", i), 4, "clique")
		g.Annotations[topology.AnnotationQueuedAt] = fmt.Sprintf("2026-11-21T00:00:%02dZ", 10-i)
		c.add(t, g, pods)
		waiting = append(waiting, pods)
		c.waitRejected(t, g.Name)
	}
	for _, next := range slices.Backward(waiting) { // the last one waits longest
		c.end(t, members)
		members = next
		if got := c.waitBound(t, members); !slices.Equal(got, inClique(0, 4)) {
			t.Errorf("members by rank are on %v, want the clique", got)
		}
	}
}

// Pods that need no accelerator keep off the nodes that have some, as long as there are others.
func TestPodsWithoutAcceleratorsKeepOff(t *testing.T) {
	plain := cliques(1, 1)[0]
	plain.Name, plain.Labels = "plain", nil
	delete(plain.Status.Allocatable, gpu)
	delete(plain.Status.Capacity, gpu)
	c := newCluster(t, append(cliques(2, 5), plain))
	var pods []*corev1.Pod
	for i := range 6 {
		p := pod(fmt.Sprint("service-", i), "0")
		delete(p.Spec.Containers[0].Resources.Requests, gpu)
		delete(p.Spec.Containers[0].Resources.Limits, gpu)
		pods = append(pods, p)
	}
	c.add(t, pods)
	for i, at := range c.waitBound(t, pods) {
		if at != "plain" {
			t.Errorf("%s is on %s, which has accelerators", pods[i].Name, at)
		}
	}
}

func TestNativeConstraintOnAnyLabel(t *testing.T) {
	c := newCluster(t, cliques(4, 5))
	group, members := gang("racked", 8, "")
	group.Annotations = nil
	group.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
		Topology: []schedulingv1beta1.TopologyConstraint{{Key: "example.com/rack"}},
	}
	c.add(t, members, group) // the PodGroup last: its event completes the gang
	got := c.waitBound(t, members)
	// Rack r0 is cliques 0 and 1: eight of its ten nodes, in order.
	if want := slices.Concat(inClique(0, 5), inClique(1, 3)); !slices.Equal(got, want) {
		t.Errorf("members by rank are on %v, want %v", got, want)
	}
}

func TestGroupsThatAreNoGangs(t *testing.T) {
	c := newCluster(t, cliques(1, 2))
	group, members := gang("basic", 3, "")
	group.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{
		Basic: &schedulingv1beta1.BasicSchedulingPolicy{},
	}
	c.add(t, group, members)
	c.waitBound(t, members[:2]) // two nodes: two of the three start
}

// A host port is nothing that the plan knows. It is taken on one node of the clique that the plan prefers.
func TestFiltersRefuseThePlan(t *testing.T) {
	tests := map[string]struct {
		members int
		want    int // clique
	}{
		"the loose placement finds room in the same clique":        {members: 9, want: 0},
		"the next plan leaves the clique of the node that refused": {members: 10, want: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, cliques(2, 10))
			obstacle := pod("obstacle", "0")
			obstacle.Spec.NodeName = nodeName(0, 3)
			port := []corev1.ContainerPort{{HostPort: 29500, ContainerPort: 29500, Protocol: corev1.ProtocolTCP}}
			obstacle.Spec.Containers[0].Ports = port
			group, members := gang("ports", test.members, "clique")
			for _, p := range members {
				p.Spec.Containers[0].Ports = port
			}
			c.add(t, obstacle, pod("marker", "0"))
			c.waitBound(t, []*corev1.Pod{pod("marker", "0")}) // the scheduler has seen the obstacle
			c.add(t, group, members)

			got := c.waitBound(t, members)
			slices.Sort(got)
			want := slices.DeleteFunc(inClique(test.want, 10), func(n string) bool { return n == nodeName(0, 3) })
			if !slices.Equal(got, want) {
				t.Errorf("the gang is on %v, want %v", got, want)
			}
		})
	}
}

// A member whose devices cannot be had fails ten times; until they can, nobody of its gang is bound.
func TestNobodyIsBoundBeforeAllCanBe(t *testing.T) {
	x := &trouble{fails: map[string]int{}}
	c := newClusterWith(t, cliques(2, 6), x)
	group, members := gang("troubled", 6, "clique")
	x.fails[members[3].Name] = 10
	c.add(t, group, members)
	c.waitBoundFor(t, members, time.Minute)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.fails[members[3].Name] != 0 || len(x.early) > 0 {
		t.Errorf("it failed %d times less than it should; bound meanwhile: %v", x.fails[members[3].Name], x.early)
	}
}

func TestLostMemberStaysInTheDomain(t *testing.T) {
	c := newCluster(t, cliques(2, 4))
	group, members := gang("torn", 3, "clique")
	running := members[:2]
	for i, p := range running {
		p.Spec.NodeName = nodeName(1, i)
	}
	c.add(t, running, group, members[2:])
	if got := c.waitBound(t, members[2:]); !strings.HasPrefix(got[0], "c1-") {
		t.Errorf("the lost member is on %s, its gang in clique 1 of %s", got[0], topology.LabelClique)
	}
}

func TestHigherPriorityTakesTheNodes(t *testing.T) {
	c := newCluster(t, cliques(1, 4))
	low, victims := gang("low", 4, "clique")
	c.add(t, low, victims)
	c.waitBound(t, victims)

	high, members := gang("high", 4, "clique")
	priority := int32(1000)
	high.Spec.Priority = &priority
	for _, p := range members {
		p.Spec.Priority = &priority
	}
	c.add(t, high, members)
	if got := c.waitBound(t, members); !slices.Equal(got, inClique(0, 4)) {
		t.Errorf("members by rank are on %v, want %v", got, inClique(0, 4))
	}
}
