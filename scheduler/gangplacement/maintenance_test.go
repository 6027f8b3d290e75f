package gangplacement_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/scheduler/schedulertest"
	"github.com/lockstep-project/lockstep/topology"
)

// annotated and tainted mark a node: by an annotation, or by a taint.
func annotated(node *corev1.Node, level string) {
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, topology.KeyMaintenance, level)
}

func tainted(node *corev1.Node, level string) {
	node.Spec.Taints = append(node.Spec.Taints,
		corev1.Taint{Key: topology.KeyMaintenance, Value: level, Effect: corev1.TaintEffectNoSchedule})
}

// says has a node say whether it lacks a GPU.
func says(node *corev1.Node, status corev1.ConditionStatus) {
	node.Status.Conditions = []corev1.NodeCondition{{Type: "GPUMissing", Status: status}}
}

// Two cliques of four. One node of the first is marked; the value of the mark sets whether the node or its domain is
// closed, to gangs and to pods in none, and a taint has the same effect.
func TestMaintenance_ClosesNodeOrDomain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mark  func(*corev1.Node)
		gangs []int // sizes, each in one clique, one after the other
		want  []string
	}{
		"the node": {
			func(n *corev1.Node) { annotated(n, "") },
			[]int{3, 4},
			[]string{"c0-n0 c0-n2 c0-n3", "c1-n0 c1-n1 c1-n2 c1-n3"},
		},
		"a level nobody has closes the node": {
			func(n *corev1.Node) { annotated(n, "row") }, []int{3}, []string{"c0-n0 c0-n2 c0-n3"},
		},
		"its clique": {
			func(n *corev1.Node) { annotated(n, "clique") }, []int{3}, []string{"c1-n0 c1-n1 c1-n2"},
		},
		"the node is to be avoided": {
			func(n *corev1.Node) { metav1.SetMetaDataAnnotation(&n.ObjectMeta, topology.KeyAvoid, "clique") },
			[]int{3, 4},
			[]string{"c0-n0 c0-n2 c0-n3", "c1-n0 c1-n1 c1-n2 c1-n3"},
		},
		"the node lacks a GPU": {
			func(n *corev1.Node) { says(n, corev1.ConditionTrue) },
			[]int{3, 4},
			[]string{"c0-n0 c0-n2 c0-n3", "c1-n0 c1-n1 c1-n2 c1-n3"},
		},
		"its clique, by the label's key and a taint": {
			func(n *corev1.Node) { tainted(n, topology.LabelClique) }, []int{3}, []string{"c1-n0 c1-n1 c1-n2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := schedulertest.Cliques(2, 4)
			test.mark(nodes[slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == "c0-n1" })])
			c := schedulertest.NewCluster(t, nodes)
			for i, size := range test.gangs {
				group, members := schedulertest.Gang("g"+strings.Repeat("g", i), size, "clique")
				c.Create(t, group, members)
				if got := strings.Join(c.WaitBound(t, members), " "); got != test.want[i] {
					t.Errorf("a gang of %d is on %s, want %s", size, got, test.want[i])
				}
			}
		})
	}
}

// A clique was closed while a gang ran in it. The gang stays; another one waits, with the reason in its message; a
// single pod waits too, but one that tolerates the mark starts there. When the mark is taken away both start.
func TestMaintenance_RunningGangStays(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(1, 4)
	annotated(nodes[slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == "c0-n3" })], "clique")
	group, members := schedulertest.RunningGang("runs", "clique", "c0-n0", "c0-n1")
	c := schedulertest.NewCluster(t, nodes, group, members)
	waits, two := schedulertest.Gang("waits", 2, "clique")
	single := schedulertest.Pod("single", "1")
	for _, p := range two {
		p.Spec.Containers[0].Resources.Requests[schedulertest.GPU] = *single.Spec.Containers[0].Resources.Requests.Name(schedulertest.GPU, "")
		p.Spec.Containers[0].Resources.Limits = p.Spec.Containers[0].Resources.Requests
	}
	c.Create(t, waits, two)
	if why := c.WaitRejected(t, "waits"); !strings.Contains(why, "4 nodes barred by maintenance") {
		t.Errorf("it waits for: %s", why)
	}
	inspector := schedulertest.Pod("inspector", "1")
	inspector.Spec.Tolerations = []corev1.Toleration{
		{Key: topology.KeyMaintenance, Operator: corev1.TolerationOpExists},
	}
	c.Create(t, single, inspector)
	c.WaitBound(t, []*corev1.Pod{inspector})
	time.Sleep(500 * time.Millisecond) // in which it is tried
	if at := c.NodeOf("single"); at != "" {
		t.Errorf("a single pod went to %s", at)
	}
	for _, m := range members {
		if _, err := c.CoreV1().
			Pods(schedulertest.Namespace).
			Get(t.Context(), m.Name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s did not stay: %v", m.Name, err)
		}
	}
	c.UpdateNode(t, "c0-n3", func(n *corev1.Node) { delete(n.Annotations, topology.KeyMaintenance) })
	c.WaitBound(t, append(slices.Clone(two), single))
}

// A health agent reports that a node lacks a GPU. A gang that needs all nodes waits, with the reason in its message,
// and so does a single pod; a pod that tolerates it starts there to inspect. When the agent takes it back, both start.
func TestNodeHealth_UnhealthyNodeClosesAndReopens(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(1, 2)
	says(schedulertest.FindNode(nodes, "c0-n1"), corev1.ConditionTrue)
	c := schedulertest.NewCluster(t, nodes)
	inspector, single := schedulertest.Pod("inspector", "1"), schedulertest.Pod("single", "1")
	for _, pod := range []*corev1.Pod{inspector, single} {
		pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: "c0-n1"}
	}
	inspector.Spec.Tolerations = []corev1.Toleration{{Key: topology.KeyUnhealthy, Operator: corev1.TolerationOpExists}}
	waits, two := schedulertest.Gang("waits", 2, "clique")
	waits.Annotations[topology.AnnotationMaxPerNode] = "1"
	for _, p := range two {
		schedulertest.SetRequest(p, schedulertest.GPU, "2")
	}
	c.Create(t, inspector, single, waits, two)
	if at := c.WaitBound(t, []*corev1.Pod{inspector}); at[0] != "c0-n1" {
		t.Errorf("the inspector is on %v", at)
	}
	if why := c.WaitRejected(t, "waits"); !strings.Contains(why, "1 node barred by node condition GPUMissing") {
		t.Errorf("it waits for: %s", why)
	}
	if at := c.NodeOf("single"); at != "" {
		t.Errorf("a single pod went to %s", at)
	}
	c.UpdateNode(t, "c0-n1", func(n *corev1.Node) { says(n, corev1.ConditionFalse) })
	c.WaitBound(t, append(slices.Clone(two), single))
}

// A clique is closed by a mark on a node that is then replaced: when the node is deleted, the gang that waits for the
// others starts.
func TestMaintenance_EndsWithTheMarkedNode(t *testing.T) {
	t.Parallel()
	nodes := schedulertest.Cliques(1, 4)
	annotated(schedulertest.FindNode(nodes, "c0-n3"), "clique")
	c := schedulertest.NewCluster(t, nodes)
	group, members := schedulertest.Gang("waits", 2, "clique")
	c.Create(t, group, members)
	if why := c.WaitRejected(t, "waits"); !strings.Contains(why, "4 nodes barred by maintenance") {
		t.Errorf("it waits for: %s", why)
	}
	if err := c.CoreV1().Nodes().Delete(t.Context(), "c0-n3", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.WaitBound(t, members)
}
