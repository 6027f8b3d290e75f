package gangplacement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// A host port is nothing that the plan knows. It is taken on one node of the clique that the plan prefers.
func TestFilters_RefusedPlanIsReplaced(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		members int
		want    int // clique
	}{
		"the unpinned placement finds room in the same clique":     {members: 9, want: 0},
		"the next plan leaves the clique of the node that refused": {members: 10, want: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 10))
			obstacle := schedulertest.Pod("obstacle", "0")
			obstacle.Spec.NodeName = schedulertest.NodeName(0, 3)
			port := []corev1.ContainerPort{{HostPort: 29500, ContainerPort: 29500, Protocol: corev1.ProtocolTCP}}
			obstacle.Spec.Containers[0].Ports = port
			group, members := schedulertest.Gang("ports", test.members, "clique")
			for _, p := range members {
				p.Spec.Containers[0].Ports = port
			}
			c.Create(t, obstacle, schedulertest.Pod("marker", "0"))
			c.WaitBound(t, []*corev1.Pod{schedulertest.Pod("marker", "0")}) // the scheduler has seen the obstacle
			c.Create(t, group, members)

			got := c.WaitBound(t, members)
			slices.Sort(got)
			want := slices.DeleteFunc(
				schedulertest.CliqueNodes(test.want, 10),
				func(n string) bool { return n == schedulertest.NodeName(0, 3) },
			)
			if !slices.Equal(got, want) {
				t.Errorf("the gang is on %v, want %v", got, want)
			}
		})
	}
}

// A gang that may go anywhere is planned on a node whose filters refuse it. The framework finds another one, and not
// the one beside it that an administrator has closed to new gangs, which no filter of kube-scheduler's knows.
func TestFilters_FallbackAvoidsClosedNodes(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(1, 4)
	for _, node := range nodes {
		if node.Name == schedulertest.NodeName(0, 2) {
			metav1.SetMetaDataAnnotation(&node.ObjectMeta, topology.KeyAvoid, "")
		}
	}
	c := schedulertest.NewCluster(t, nodes)
	obstacle := schedulertest.Pod("obstacle", "0")
	obstacle.Spec.NodeName = schedulertest.NodeName(0, 1)
	port := []corev1.ContainerPort{{HostPort: 29500, ContainerPort: 29500, Protocol: corev1.ProtocolTCP}}
	obstacle.Spec.Containers[0].Ports = port
	c.Create(t, obstacle, schedulertest.Pod("marker", "0"))
	c.WaitBound(t, []*corev1.Pod{schedulertest.Pod("marker", "0")}) // the scheduler has seen the obstacle
	group, members := schedulertest.Gang("anywhere", 2, "")
	for _, p := range members {
		p.Spec.Containers[0].Ports = port
	}
	c.Create(t, group, members)
	got := c.WaitBound(t, members)
	slices.Sort(got)
	if want := []string{schedulertest.NodeName(0, 0), schedulertest.NodeName(0, 3)}; !slices.Equal(got, want) {
		t.Errorf("the gang is on %v, want %v", got, want)
	}
}

// The plan does not know the rules that only the framework's filters know: it has to find out. Whatever it planned
// first, a gang ends whole where the filters let it, within the time that WaitBound gives, or waits.

// refused is in the condition of a gang that no placement can pass the filters with.
const refused = "refused by the scheduler's filters"

// zoned labels each clique as a zone of its own.
func zoned(nodes []*corev1.Node) []*corev1.Node {
	for _, n := range nodes {
		n.Labels["example.com/hall"] = "hall-of-" + n.Labels[topology.LabelClique]
	}
	return nodes
}

// inOneClique fails unless the nodes are all of one clique, and returns that.
func inOneClique(t *testing.T, nodes []string) string {
	t.Helper()
	at := nodes[0][:2]
	if slices.ContainsFunc(nodes, func(n string) bool { return !strings.HasPrefix(n, at) }) {
		t.Errorf("the gang is on %v, not in one clique", nodes)
	}
	return at
}

// A noisy service runs on one node of the clique that the plan prefers.
func TestPodAntiAffinity_GangAvoidsNoisyNeighbor(t *testing.T) {
	t.Parallel()
	noisy := schedulertest.ServicePod("noisy", schedulertest.NodeName(0, 2), map[string]string{"app": "noisy"})
	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 4), noisy)

	group, members := schedulertest.GangWith("elsewhere", 4, "clique", schedulertest.AvoidApp("noisy"))
	c.Create(t, group, members)
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(1, 4)) {
		t.Errorf("members by rank are on %v, want clique 1 in order", got)
	}
	group, waiting := schedulertest.GangWith("nowhere", 4, "clique", schedulertest.AvoidApp("noisy"))
	c.Create(t, group, waiting)
	if why := c.WaitRejected(t, "nowhere"); !strings.Contains(why, refused) {
		t.Errorf("the gang that fits nowhere is told %q, want %q in it", why, refused)
	}
	group, members = schedulertest.GangWith("around", 3, "clique", schedulertest.AvoidApp("noisy"))
	c.Create(t, group, members)
	got := c.WaitBound(t, members)
	slices.Sort(got)
	if want := []string{
		schedulertest.NodeName(0, 0),
		schedulertest.NodeName(0, 1),
		schedulertest.NodeName(0, 3),
	}; !slices.Equal(
		got,
		want,
	) {
		t.Errorf("the gang is on %v, want %v", got, want)
	}
	c.ExpectUnbound(t, waiting)
}

// The members must be where their cache is. All nodes of the other cliques refuse them.
func TestPodAffinity_GangFollowsItsCache(t *testing.T) {
	for name, fleet := range map[string]struct{ cliques, size int }{
		"two cliques that the gang fills":      {2, 4},
		"four cliques with room for two of it": {4, 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			last := fleet.cliques - 1
			cache := schedulertest.ServicePod(
				"cache",
				schedulertest.NodeName(last, 0),
				map[string]string{"app": "cache"},
			)
			c := schedulertest.NewCluster(t, zoned(schedulertest.Cliques(fleet.cliques, fleet.size)), cache)
			group, members := schedulertest.GangWith(
				"cached",
				4,
				"clique",
				schedulertest.SeekApp("cache", "example.com/hall"),
			)
			c.Create(t, group, members)
			if got := inOneClique(t, c.WaitBound(t, members)); got != fmt.Sprint("c", last) {
				t.Errorf("the gang is in %s, its cache in c%d", got, last)
			}
		})
	}
}

// A gang whose cache runs nowhere waits, and its message says so; the cache is created, and the gang starts.
func TestPodAffinity_GangWaitsForItsCache(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, zoned(schedulertest.Cliques(2, 4)))
	group, members := schedulertest.GangWith("cached", 4, "clique", schedulertest.SeekApp("cache", "example.com/hall"))
	c.Create(t, group, members)
	if why := c.WaitRejected(t, "cached"); !strings.Contains(why, refused) {
		t.Errorf("the gang is told %q, want %q in it", why, refused)
	}
	other, fits := schedulertest.Gang("other", 4, "clique")
	c.Create(t, other, fits)
	at := inOneClique(t, c.WaitBound(t, fits))
	c.ExpectUnbound(t, members)

	free := map[string]int{"c0": 1, "c1": 0}[at]
	c.Create(t, schedulertest.ServicePod("cache", schedulertest.NodeName(free, 0), map[string]string{"app": "cache"}))
	if got := inOneClique(t, c.WaitBound(t, members)); got == at {
		t.Errorf("the gang is in %s with the other gang", got)
	}
}

// Members that bear no other member on their host: the plan, which does not know, packs four on each.
func TestPodAntiAffinity_OneMemberPerHost(t *testing.T) {
	alone := func(p *corev1.Pod) {
		p.Labels["app"] = "alone"
		schedulertest.SetRequest(p, schedulertest.GPU, "1")
		schedulertest.AvoidApp("alone")(p)
	}
	for name, test := range map[string]struct {
		members  int
		required string
	}{
		"anywhere":                          {6, ""},
		"in the clique that is planned":     {4, "clique"},
		"in a clique that has enough hosts": {6, "clique"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			small, large := schedulertest.Cliques(1, 4), schedulertest.Cliques(2, 8)
			large = slices.DeleteFunc(large, func(n *corev1.Node) bool { return strings.HasPrefix(n.Name, "c0") })
			c := schedulertest.NewCluster(t, small, large)
			group, members := schedulertest.GangWith("alone", test.members, test.required, alone)
			c.Create(t, group, members)
			got := c.WaitBound(t, members)
			if test.required != "" {
				inOneClique(t, got)
			}
			slices.Sort(got)
			if hosts := len(slices.Compact(got)); hosts != test.members {
				t.Errorf("%d members are on %d hosts", test.members, hosts)
			}
		})
	}
}

// evenly divides pods with the label app over cliques.
func evenly(p *corev1.Pod) {
	p.Labels["app"] = "even"
	p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: topology.LabelClique, WhenUnsatisfiable: corev1.DoNotSchedule,
		LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "even"}},
	}}
}

func TestTopologySpread_MembersDivideEvenly(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(3, 4))
	group, members := schedulertest.GangWith("even", 6, "", evenly)
	c.Create(t, group, members)
	count := make(map[string]int)
	for _, at := range c.WaitBound(t, members) {
		count[at[:2]]++
	}
	if count["c0"] != 2 || count["c1"] != 2 || count["c2"] != 2 {
		t.Errorf("members by clique: %v, want two in each", count)
	}
}

// Even division over cliques and one clique for all contradict each other.
func TestTopologySpread_ContradictionWaits(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(2, 4))
	group, members := schedulertest.GangWith("torn", 4, "clique", evenly)
	c.Create(t, group, members)
	if why := c.WaitRejected(t, "torn"); !strings.Contains(why, refused) {
		t.Errorf("the gang is told %q, want %q in it", why, refused)
	}
	other, fits := schedulertest.Gang("other", 4, "clique")
	c.Create(t, other, fits)
	inOneClique(t, c.WaitBound(t, fits))
	c.ExpectUnbound(t, members)
}
