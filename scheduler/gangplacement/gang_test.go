package gangplacement_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// A fleet of more nodes than kube-scheduler looks at for one pod: pods without accelerators still keep off the nodes
// that have some.
func TestGangPlacement_FewPlainNodesAreFound(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(30, 6)
	for i := range 3 {
		plain := nodes[i].DeepCopy()
		plain.Name = fmt.Sprint("plain", i)
		plain.Labels = map[string]string{corev1.LabelHostname: plain.Name}
		delete(plain.Status.Allocatable, schedulertest.GPU)
		delete(plain.Status.Capacity, schedulertest.GPU)
		nodes = append(nodes, plain)
	}
	c := schedulertest.NewCluster(t, nodes)
	var pods []*corev1.Pod
	for i := range 30 {
		p := schedulertest.Pod(fmt.Sprint("service", i), "0")
		delete(p.Spec.Containers[0].Resources.Requests, schedulertest.GPU)
		delete(p.Spec.Containers[0].Resources.Limits, schedulertest.GPU)
		pods = append(pods, p)
	}
	c.Create(t, pods)
	for i, node := range c.WaitBound(t, pods) {
		if len(node) < 5 || node[:5] != "plain" {
			t.Errorf("%s is on %s, which has accelerators", pods[i].Name, node)
		}
	}
}

func TestGangPlacement_WholeInRankOrder(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(4, 10))
	fits, members := schedulertest.Gang("fits", 10, "clique")
	large, tooMany := schedulertest.Gang("large", 11, "clique")
	single := schedulertest.Pod("single", "1")
	c.Create(t, large, tooMany, fits, members, single)

	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(0, 10)) {
		t.Errorf("members by rank are on %v, want %v", got, schedulertest.CliqueNodes(0, 10))
	}
	c.WaitBound(t, []*corev1.Pod{single})
	if why := c.WaitRejected(t, "large"); !strings.Contains(why, "needs 11 members in one clique") {
		t.Errorf("the gang that does not fit is told %q", why)
	}
	// Room elsewhere and a second attempt change nothing for half a gang.
	c.Create(t, schedulertest.Pod("later", "1"))
	c.WaitBound(t, []*corev1.Pod{schedulertest.Pod("later", "1")})
	for _, p := range tooMany {
		if at := c.NodeOf(p.Name); at != "" {
			t.Errorf("%s of the gang that does not fit is on %s", p.Name, at)
		}
	}
}

// Every wish of the design's table is honored on any PodGroup, regardless of its creator.
func TestAnnotations_HonoredOnAnyPodGroup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		wishes map[string]string
		want   []string
	}{
		"segments": {
			map[string]string{topology.AnnotationSegmentSize: "3", topology.AnnotationSegmentTopology: "clique"},
			slices.Concat(schedulertest.CliqueNodes(0, 3), schedulertest.CliqueNodes(1, 3)),
		},
		"spread": {
			map[string]string{topology.AnnotationSpreadMax: "2", topology.AnnotationSpreadTopology: "clique"},
			slices.Concat(schedulertest.CliqueNodes(0, 2), schedulertest.CliqueNodes(1, 2), schedulertest.CliqueNodes(2, 2)),
		},
		"spares": {
			map[string]string{topology.AnnotationSpares: "2"},
			slices.Concat(schedulertest.CliqueNodes(0, 3), schedulertest.CliqueNodes(1, 3)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := schedulertest.NewCluster(t, schedulertest.Cliques(3, 5))
			group, members := schedulertest.Gang("wishing", 6, "")
			group.Annotations = test.wishes
			c.Create(t, group, members)
			if got := c.WaitBound(t, members); !slices.Equal(got, test.want) {
				t.Errorf("members by rank are on %v, want %v", got, test.want)
			}
		})
	}
}

// A gang with a wish that cannot be read, or that no fleet like this can fulfill, waits with that explanation. Others
// start.
func TestAnnotations_WrongValuesAreExplained(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 5))
	for name, test := range map[string]struct {
		key, value, want string
	}{
		"unreadable": {topology.AnnotationSegmentSize, "four", topology.AnnotationSegmentSize + ` is "four"`},
		"unknown":    {topology.AnnotationPreferredTopology, "cage", "preferred level cage"},
		"homeless":   {topology.AnnotationSegmentSize, "4", "segment: it needs a level"},
	} {
		group, members := schedulertest.Gang(name, 4, "clique")
		group.Annotations[test.key] = test.value
		c.Create(t, group, members)
		if why := c.WaitRejected(t, name); !strings.Contains(why, test.want) {
			t.Errorf("%s: the gang is told %q", name, why)
		}
	}
	group, members := schedulertest.Gang("right", 4, "clique")
	c.Create(t, group, members)
	c.WaitBound(t, members)
}

// Pods that need no accelerator keep off the nodes that have some, as long as there are others.
func TestGangPlacement_PlainPodsAvoidAccelerators(t *testing.T) {
	t.Parallel()
	plain := schedulertest.Cliques(1, 1)[0]
	plain.Name, plain.Labels = "plain", nil
	delete(plain.Status.Allocatable, schedulertest.GPU)
	delete(plain.Status.Capacity, schedulertest.GPU)
	c := schedulertest.NewCluster(t, append(schedulertest.Cliques(2, 5), plain))
	var pods []*corev1.Pod
	for i := range 6 {
		p := schedulertest.Pod(fmt.Sprint("service-", i), "0")
		delete(p.Spec.Containers[0].Resources.Requests, schedulertest.GPU)
		delete(p.Spec.Containers[0].Resources.Limits, schedulertest.GPU)
		pods = append(pods, p)
	}
	c.Create(t, pods)
	for i, at := range c.WaitBound(t, pods) {
		if at != "plain" {
			t.Errorf("%s is on %s, which has accelerators", pods[i].Name, at)
		}
	}
}

func TestSchedulingConstraints_AcceptAnyLabel(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(4, 5))
	group, members := schedulertest.Gang("racked", 8, "")
	group.Annotations = nil
	group.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
		Topology: []schedulingv1beta1.TopologyConstraint{{Key: "example.com/rack"}},
	}
	c.Create(t, members, group) // the PodGroup last: its event completes the gang
	got := c.WaitBound(t, members)
	// Rack r0 is cliques 0 and 1: eight of its ten nodes, in order.
	if want := slices.Concat(
		schedulertest.CliqueNodes(0, 5),
		schedulertest.CliqueNodes(1, 3),
	); !slices.Equal(
		got,
		want,
	) {
		t.Errorf("members by rank are on %v, want %v", got, want)
	}
}

func TestGangPlacement_BasicGroupsAreNoGangs(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(1, 2))
	group, members := schedulertest.Gang("basic", 3, "")
	group.Spec.SchedulingPolicy = schedulingv1beta1.PodGroupSchedulingPolicy{
		Basic: &schedulingv1beta1.BasicSchedulingPolicy{},
	}
	c.Create(t, group, members)
	c.WaitBound(t, members[:2]) // two nodes: two of the three start
}

func TestReplacement_StaysInTheDomain(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 4))
	group, members := schedulertest.Gang("torn", 3, "clique")
	running := members[:2]
	for i, p := range running {
		p.Spec.NodeName = schedulertest.NodeName(1, i)
	}
	c.Create(t, running, group, members[2:])
	if got := c.WaitBound(t, members[2:]); !strings.HasPrefix(got[0], "c1-") {
		t.Errorf("the lost member is on %s, its gang in clique 1 of %s", got[0], topology.LabelClique)
	}
}

// Two cliques of six in one rack. Segments of four: ranks 0-3 in one clique, 4-7 in the other; two nodes of each are
// spare.
//
//	before  c0: 0 1 2 3 . .     c1: 4 5 6 7 . .
//	lost    c0: 0 - - 3 . .     c1: 4 5 - 7 . .
//	after   c0: 0     3 1 2     c1: 4 5   7 6 .
func TestReplacement_SeveralMembersByOnePlan(t *testing.T) {
	t.Parallel()
	var nodes []string
	for rank := range 8 {
		nodes = append(nodes, schedulertest.NodeName(rank/4, rank%4))
	}
	group, members := schedulertest.RunningGang("train", "example.com/rack", nodes...)
	maps.Copy(group.Annotations, map[string]string{
		topology.AnnotationSegmentSize:     "4",
		topology.AnnotationSegmentTopology: "clique",
		topology.AnnotationSpares:          "2",
	})
	c := schedulertest.NewCluster(t, schedulertest.Cliques(4, 6), group, members)
	lost := []*corev1.Pod{members[1], members[2], members[6]}
	c.LoseNodes(t, lost, nodes[1], nodes[2], nodes[6])
	// A Job makes its pods one by one. Those that are there first wait for the last one: only together they have one
	// plan.
	c.Create(t, schedulertest.Recreated(lost[0]), schedulertest.Recreated(lost[1]))
	time.Sleep(300 * time.Millisecond)
	for _, pod := range lost[:2] {
		if at := c.NodeOf(schedulertest.Recreated(pod).Name); at != "" {
			t.Fatalf("%s got %s before all lost members were there", pod.Name, at)
		}
	}
	c.Create(t, schedulertest.Recreated(lost[2]))
	got := c.WaitBound(
		t,
		[]*corev1.Pod{
			schedulertest.Recreated(lost[0]),
			schedulertest.Recreated(lost[1]),
			schedulertest.Recreated(lost[2]),
		},
	)
	if want := []string{"c0-n4", "c0-n5"}; !slices.Equal(got[:2], want) {
		t.Errorf("ranks 1 and 2 are on %v, want the spares of their segment's clique, %v", got[:2], want)
	}
	if !slices.Contains([]string{"c1-n4", "c1-n5"}, got[2]) {
		t.Errorf("rank 6 is on %s, want a spare of its segment's clique", got[2])
	}
}
