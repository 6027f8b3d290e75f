package devices_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// A clique of four with two nodes that are still in a ComputeDomain without users. A gang of four waits until the last
// has left it, and its message names the reason; a gang without channels would not have to wait.
func TestComputeDomain_OccupiedNodeIsNotFree(t *testing.T) {
	t.Parallel()
	nodes := labels(schedulertest.Cliques(1, 4), domainLabel, "gone", "c0-n1", "c0-n2")
	group, members, claims := nvlinkGang("train", 4)
	c := schedulertest.NewCluster(t, linked(nodes), claims)
	c.Create(t, group, members)
	why := c.WaitRejected(t, "train")
	for _, part := range []string{
		"nearest fabric.0: 2 of 4, 2 nodes full there", "2 nodes are still in other ComputeDomains", "a place is reserved for it",
	} {
		if !strings.Contains(why, part) {
			t.Errorf("it waits for: %s; want %q", why, part)
		}
	}
	c.UpdateNode(t, "c0-n1", func(n *corev1.Node) { delete(n.Labels, domainLabel) })
	time.Sleep(300 * time.Millisecond)
	c.ExpectUnbound(t, members)
	c.UpdateNode(t, "c0-n2", func(n *corev1.Node) { delete(n.Labels, domainLabel) })
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(0, 4)) {
		t.Errorf("the gang is on %v", got)
	}
}

// A gang that starts again finds its nodes in its own ComputeDomain, and need not wait; and one without channels does
// not care.
func TestComputeDomain_OwnDomainIsNoObstacle(t *testing.T) {
	t.Parallel()
	nodes := labels(schedulertest.Cliques(2, 4), domainLabel, "domain-of-train", schedulertest.CliqueNodes(0, 4)...)
	labels(nodes, domainLabel, "other", schedulertest.CliqueNodes(1, 4)...)
	group, members, claims := nvlinkGang("train", 4)
	plain, others := schedulertest.Gang("plain", 4, "clique")
	c := schedulertest.NewCluster(t, linked(nodes), claims)
	c.Create(t, group, members)
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(0, 4)) {
		t.Errorf("the gang is on %v", got)
	}
	c.Create(t, plain, others)
	c.WaitBound(t, others)
}

// A pod in no gang stays off the node too, until it has left the other ComputeDomain.
func TestComputeDomain_SinglePodWaitsForNode(t *testing.T) {
	t.Parallel()
	nodes := labels(schedulertest.Cliques(1, 1), domainLabel, "gone", "c0-n0")
	single := schedulertest.Pod("single", "1")
	c := schedulertest.NewCluster(t, linked(nodes), channelsOf([]*corev1.Pod{single}, "its"))
	c.Create(t, single)
	time.Sleep(500 * time.Millisecond)
	c.ExpectUnbound(t, []*corev1.Pod{single})
	c.UpdateNode(t, "c0-n0", func(n *corev1.Node) { delete(n.Labels, domainLabel) })
	c.WaitBound(t, []*corev1.Pod{single})
}

// Without a required clique a gang of 30 is on two cliques of 20, no more than 18 in each. A limit of its own at
// another level cannot be combined with that, and the gang's message says so.
func TestComputeDomain_ConnectsAtMost18Nodes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"by itself":          {nil, "12 18"},
		"its own is tighter": {map[string]string{topology.AnnotationSpreadTopology: "clique", topology.AnnotationSpreadMax: "15"}, "15 15"},
		"its own is looser":  {map[string]string{topology.AnnotationSpreadTopology: "clique", topology.AnnotationSpreadMax: "20"}, "12 18"},
		"per node":           {map[string]string{topology.AnnotationSpreadTopology: "node", topology.AnnotationSpreadMax: "1"}, "12 18"},
		"segments": {map[string]string{
			topology.AnnotationSegmentTopology: "clique", topology.AnnotationSegmentSize: "5",
		}, "15 15"},
		"at another level": {map[string]string{
			topology.AnnotationSpreadTopology: "zone", topology.AnnotationSpreadMax: "20",
		}, "20 per zone cannot be kept together with that"},
		"segments too large": {map[string]string{
			topology.AnnotationSegmentTopology: "clique", topology.AnnotationSegmentSize: "19",
		}, "segments of 19 in one clique cannot be kept apart"},
	} {
		t.Run(name, func(t *testing.T) {
			group, members, claims := nvlinkGang("train", 30)
			delete(group.Annotations, topology.AnnotationRequiredTopology)
			for key, value := range test.annotations {
				metav1.SetMetaDataAnnotation(&group.ObjectMeta, key, value)
			}
			nodes := schedulertest.Cliques(2, 20)
			for _, n := range nodes {
				n.Labels[corev1.LabelTopologyZone] = "z"
			}
			c := schedulertest.NewCluster(t, linked(nodes), claims)
			c.Create(t, group, members)
			if strings.Contains(test.want, "cannot") {
				if why := c.WaitRejected(t, "train"); !strings.Contains(why, test.want) {
					t.Errorf("it waits for: %s; want %q", why, test.want)
				}
				return
			}
			if got := perClique(c.WaitBound(t, members)); got != test.want {
				t.Errorf("it has %s members per clique, want %s", got, test.want)
			}
		})
	}
}

// perClique returns the number of the nodes in each clique, ascending.
func perClique(nodes []string) string {
	counts := map[string]int{}
	for _, n := range nodes {
		clique, _, _ := strings.Cut(n, "-")
		counts[clique]++
	}
	var sizes []string
	for _, n := range counts {
		sizes = append(sizes, strconv.Itoa(n))
	}
	slices.Sort(sizes)
	return strings.Join(sizes, " ")
}

// A claim for a channel that does not name a ComputeDomain is reported in one line.
func TestComputeDomain_ChannelWithoutDomainIsExplained(t *testing.T) {
	t.Parallel()
	for name, config := range map[string][]resourcev1.DeviceClaimConfiguration{
		"no configuration": nil,
		"no domain":        {configured(`{"kind":"ComputeDomainChannelConfig"}`)},
		"not readable":     {configured(`{"kind":"ComputeDomainChannelConfig","domainID":7}`)},
		"another kind":     {configured(`{"kind":"ComputeDomainDaemonConfig","domainID":"x"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			group, members, claims := nvlinkGang("train", 2)
			claims[1].(*resourcev1.ResourceClaim).Spec.Devices.Config = config
			c := schedulertest.NewCluster(t, linked(schedulertest.Cliques(1, 4)), claims)
			c.Create(t, group, members)
			why := c.WaitRejected(t, "train")
			if !strings.Contains(why, "claim train-1-devices asks for a channel and names no ComputeDomain") {
				t.Errorf("it waits for: %s", why)
			}
		})
	}
}
