package gangplacement_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

const hca = corev1.ResourceName("rdma/hca")

// obstacle is something about one node of clique 0, or about the members, that makes that node no place for them.
type obstacle struct {
	// on changes the node; more are objects beside the nodes.
	on   func(*corev1.Node)
	more []runtime.Object
	// member makes a member one that minds.
	member func(*corev1.Pod)
	// why is the message to a gang that finds no place because of it.
	why string
}

func (o obstacle) members(p *corev1.Pod) {
	if o.member != nil {
		o.member(p)
	}
}

// testObstacle tries three gangs on two cliques of four with one node that is no place for them: one that fits only the
// other clique, the next that fits nowhere, and one of three that fits around the obstacle.
func testObstacle(t *testing.T, o obstacle) {
	t.Helper()
	const blocked = 2
	nodes := schedulertest.Cliques(2, 4)
	if o.on != nil {
		o.on(schedulertest.FindNode(nodes, schedulertest.NodeName(0, blocked)))
	}
	c := schedulertest.NewCluster(t, nodes, o.more)

	group, members := schedulertest.GangWith("elsewhere", 4, "clique", o.members)
	c.Create(t, group, members)
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(1, 4)) {
		t.Errorf("members by rank are on %v, want clique 1 in order", got)
	}
	group, waiting := schedulertest.GangWith("nowhere", 4, "clique", o.members)
	c.Create(t, group, waiting)
	if why := c.WaitRejected(t, "nowhere"); !strings.Contains(why, o.why) {
		t.Errorf("the gang that fits nowhere is told %q, want %q in it", why, o.why)
	}
	group, members = schedulertest.GangWith("around", 3, "clique", o.members)
	c.Create(t, group, members)
	want := []string{schedulertest.NodeName(0, 0), schedulertest.NodeName(0, 1), schedulertest.NodeName(0, 3)}
	if got := c.WaitBound(t, members); !slices.Equal(got, want) {
		t.Errorf("members by rank are on %v, want %v", got, want)
	}
	c.ExpectUnbound(t, waiting)
}

// The plan respects at once all that it knows of a node.
func TestGangPlacement_SkipsUnusableNodes(t *testing.T) {
	t.Parallel()
	taint := corev1.Taint{Key: "example.com/repair", Effect: corev1.TaintEffectNoSchedule}
	hungry := schedulertest.ServicePod("hungry", schedulertest.NodeName(0, 2), nil)
	schedulertest.SetRequest(hungry, corev1.ResourceMemory, "400Gi")
	for name, o := range map[string]obstacle{
		"taint": {
			on:  func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{taint} },
			why: "untolerated taint example.com/repair",
		},
		"cordon": {on: func(n *corev1.Node) { n.Spec.Unschedulable = true }, why: "cordoned"},
		"affinity of the members": {
			member: func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: nodesWith(
						corev1.LabelHostname, corev1.NodeSelectorOpNotIn, schedulertest.NodeName(0, 2)),
				}}
			},
			why: "node selector or affinity",
		},
		"memory": {
			more:   schedulertest.Objects(hungry),
			member: func(p *corev1.Pod) { schedulertest.SetRequest(p, corev1.ResourceMemory, "200Gi") },
			why:    "needs 4 members in one clique",
		},
	} {
		t.Run(name, func(t *testing.T) { testObstacle(t, o) })
	}
}

// Adapters are scarcer than GPUs: each node has four GPUs and two adapters, one has one left.
func TestGangPlacement_ScarcestResourceDecides(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(2, 4)
	for _, n := range nodes {
		n.Status.Capacity[hca], n.Status.Allocatable[hca] = resource.MustParse("2"), resource.MustParse("2")
	}
	user := schedulertest.ServicePod("user", schedulertest.NodeName(0, 1), nil)
	schedulertest.SetRequest(user, hca, "1")
	c := schedulertest.NewCluster(t, nodes, user)

	group, members := schedulertest.GangWith("adapters", 8, "clique", func(p *corev1.Pod) {
		schedulertest.SetRequest(p, schedulertest.GPU, "1")
		schedulertest.SetRequest(p, hca, "1")
	})
	c.Create(t, group, members)
	var want []string // two on each node, in rank order
	for _, n := range schedulertest.CliqueNodes(1, 4) {
		want = append(want, n, n)
	}
	if got := c.WaitBound(t, members); !slices.Equal(got, want) {
		t.Errorf("members by rank are on %v, want %v", got, want)
	}
	group, members = schedulertest.GangWith(
		"too-many",
		8,
		"clique",
		func(p *corev1.Pod) { schedulertest.SetRequest(p, hca, "1") },
	)
	c.Create(t, group, members)
	c.WaitRejected(t, "too-many")
	c.ExpectUnbound(t, members)
}

// A launcher without GPUs starts in the tainted pool that it selects and tolerates, the workers of its gang in one
// clique.
func TestGangPlacement_LauncherAndWorkersInTwoPools(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(2, 4)
	for i := range 2 {
		plain := schedulertest.Cliques(1, 1)[0]
		plain.Name, plain.Labels = fmt.Sprint("plain-", i), map[string]string{"pool": "services"}
		plain.Spec.Taints = []corev1.Taint{{Key: "services", Effect: corev1.TaintEffectNoSchedule}}
		delete(plain.Status.Allocatable, schedulertest.GPU)
		nodes = append(nodes, plain)
	}
	schedulertest.FindNode(nodes, schedulertest.NodeName(0, 3)).Spec.Unschedulable = true
	c := schedulertest.NewCluster(t, nodes)

	group, members := schedulertest.Gang("shapes", 5, "")
	launcher := members[0]
	launcher.Labels = map[string]string{"jobset.sigs.k8s.io/replicatedjob-name": "launcher"}
	schedulertest.SetRequest(launcher, schedulertest.GPU, "0")
	launcher.Spec.NodeSelector = map[string]string{"pool": "services"}
	launcher.Spec.Tolerations = []corev1.Toleration{{Key: "services", Operator: corev1.TolerationOpExists}}
	for _, worker := range members[1:] {
		worker.Labels["jobset.sigs.k8s.io/replicatedjob-name"] = "worker"
	}
	c.Create(t, group, members)
	got := c.WaitBound(t, members)
	if !strings.HasPrefix(got[0], "plain-") || !slices.Equal(got[1:], schedulertest.CliqueNodes(1, 4)) {
		t.Errorf("launcher and workers are on %v, want a plain node and clique 1 in order", got)
	}
}

// A gang whose members tolerate a taint may use the nodes that have it.
func TestGangPlacement_UsesToleratedTaint(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(1, 4)
	for _, n := range nodes {
		n.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "present", Effect: corev1.TaintEffectNoSchedule}}
	}
	c := schedulertest.NewCluster(t, nodes)
	stranger, outside := schedulertest.Gang("stranger", 2, "clique")
	c.Create(t, stranger, outside)
	c.WaitRejected(t, "stranger")
	group, members := schedulertest.GangWith("tolerant", 4, "clique", func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpEqual, Value: "present"}}
	})
	c.Create(t, group, members)
	if got := c.WaitBound(t, members); !slices.Equal(got, schedulertest.CliqueNodes(0, 4)) {
		t.Errorf("members by rank are on %v, want the clique in order", got)
	}
	c.ExpectUnbound(t, outside)
}

// Pods in no group, a group of policy basic and a gang that wishes nothing share the fleet with a gang that does.
func TestGangPlacement_MixedPodsShareTheFleet(t *testing.T) {
	t.Parallel()
	c := schedulertest.NewCluster(t, schedulertest.Cliques(3, 4))
	basic, singles := schedulertest.Gang("basic", 2, "")
	basic.Annotations, basic.Spec.SchedulingPolicy.Gang = nil, nil
	basic.Spec.SchedulingPolicy.Basic = &schedulingv1beta1.BasicSchedulingPolicy{}
	plain, members := schedulertest.Gang("plain", 3, "")
	plain.Annotations = nil
	picky, together := schedulertest.Gang("picky", 4, "clique")
	alone := []*corev1.Pod{
		schedulertest.Pod("alone-0", "4"),
		schedulertest.Pod("alone-1", "2"),
		schedulertest.Pod("alone-2", "2"),
	}
	c.Create(t, alone, basic, singles, members, plain, picky, together)
	for _, pods := range [][]*corev1.Pod{alone, singles, members, together} {
		c.WaitBound(t, pods)
	}
	domains := make(map[string]bool)
	for _, at := range c.WaitBound(t, together) {
		domains[at[:2]] = true
	}
	if len(domains) != 1 {
		t.Errorf("the gang that wishes one %s is on %d", topology.LabelClique, len(domains))
	}
}
