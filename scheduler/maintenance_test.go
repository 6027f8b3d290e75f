package scheduler_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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

// change updates a node.
func (c *cluster) change(t *testing.T, name string, change func(*corev1.Node)) {
	t.Helper()
	node, err := c.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node = node.DeepCopy()
	change(node)
	if _, err := c.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// Two cliques of four. One node of the first is marked; the value of the mark says how much is closed, to gangs and to pods in
// none, and the same if it is a taint.
func TestMaintenanceClosesANodeOrItsDomain(t *testing.T) {
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
		"its clique, by the label's key and a taint": {
			func(n *corev1.Node) { tainted(n, topology.LabelClique) }, []int{3}, []string{"c1-n0 c1-n1 c1-n2"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			nodes := cliques(2, 4)
			test.mark(nodes[slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == "c0-n1" })])
			c := newCluster(t, nodes)
			for i, size := range test.gangs {
				group, members := gang("g"+strings.Repeat("g", i), size, "clique")
				c.add(t, group, members)
				if got := strings.Join(c.waitBound(t, members), " "); got != test.want[i] {
					t.Errorf("a gang of %d is on %s, want %s", size, got, test.want[i])
				}
			}
		})
	}
}

// A clique was closed while a gang ran in it. The gang stays; another one waits, and is told why; a single pod waits too, but
// one that tolerates the mark goes there. When the mark is taken away both start.
func TestWhatRunsStaysUnderMaintenance(t *testing.T) {
	nodes := cliques(1, 4)
	annotated(nodes[slices.IndexFunc(nodes, func(n *corev1.Node) bool { return n.Name == "c0-n3" })], "clique")
	group, members := on("runs", "clique", "c0-n0", "c0-n1")
	c := listed(t, slices.Concat(as(nodes...), []runtime.Object{group}, as(members...))...)
	waits, two := gang("waits", 2, "clique")
	single := pod("single", "1")
	for _, p := range two {
		p.Spec.Containers[0].Resources.Requests[gpu] = *single.Spec.Containers[0].Resources.Requests.Name(gpu, "")
		p.Spec.Containers[0].Resources.Limits = p.Spec.Containers[0].Resources.Requests
	}
	c.add(t, waits, two)
	if why := c.waitRejected(t, "waits"); !strings.Contains(why, "4 nodes barred by maintenance") {
		t.Errorf("it waits for: %s", why)
	}
	inspector := pod("inspector", "1")
	inspector.Spec.Tolerations = []corev1.Toleration{
		{Key: topology.KeyMaintenance, Operator: corev1.TolerationOpExists},
	}
	c.add(t, single, inspector)
	c.waitBound(t, []*corev1.Pod{inspector})
	time.Sleep(500 * time.Millisecond) // in which it is tried
	if at := c.nodeOf("single"); at != "" {
		t.Errorf("a single pod went to %s", at)
	}
	for _, m := range members {
		if _, err := c.CoreV1().Pods(namespace).Get(t.Context(), m.Name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s did not stay: %v", m.Name, err)
		}
	}
	c.change(t, "c0-n3", func(n *corev1.Node) { delete(n.Annotations, topology.KeyMaintenance) })
	c.waitBound(t, append(slices.Clone(two), single))
}
