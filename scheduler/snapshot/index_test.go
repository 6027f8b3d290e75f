package snapshot_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

const gpu = corev1.ResourceName("nvidia.com/gpu")

func list(cpu, gpus string) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse("1Gi"),
		corev1.ResourcePods: resource.MustParse("10"), gpu: resource.MustParse(gpus),
	}
}

func node(name, clique string) *corev1.Node {
	labels := map[string]string{corev1.LabelHostname: name}
	if clique != "" {
		labels[topology.LabelClique] = clique
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status:     corev1.NodeStatus{Allocatable: list("8", "4")},
	}
}

func pod(name string, asks corev1.ResourceList) *corev1.Pod {
	asks = maps.Clone(asks)
	delete(asks, corev1.ResourcePods)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Resources: corev1.ResourceRequirements{Requests: asks}},
		}},
	}
}

func info(n *corev1.Node, pods ...*corev1.Pod) fwk.NodeInfo {
	out := framework.NewNodeInfo(pods...)
	out.SetNode(n)
	return out
}

func update(t *testing.T, index *snapshot.Index, nodes []fwk.NodeInfo, resources []corev1.ResourceName) snapshot.View {
	t.Helper()
	view, err := index.Update(nodes, resources)
	if err != nil {
		t.Fatal(err)
	}
	return view
}

func TestIndex_CountsFreeResources(t *testing.T) {
	nodes := []fwk.NodeInfo{
		info(node("b2", "b")), info(node("a1", "a"), pod("p", list("1500m", "1"))), info(node("none", "")),
		info(node("full", "b"), pod("q", list("9", "4"))),
	}
	index := snapshot.NewIndex(nil, "", nodehealth.Rules{})
	view := update(t, index, nodes, nil)
	if got := view.Free[0]; len(got) != 4 {
		t.Fatalf("a vector of resources nobody asked for: %v", got)
	}
	view = update(t, index, nodes, []corev1.ResourceName{gpu})
	// pods, milliCPU, memory, ephemeral storage, GPUs.
	want := map[string]topology.Capacity{
		"a1": {
			9,
			6500,
			0,
			0,
			3,
		},
		"b2":   {10, 8000, 1 << 30, 0, 4},
		"full": {9, 0, 0, 0, 0},
		"none": {10, 8000, 1 << 30, 0, 4},
	}
	order := []string{"a1", "b2", "full", "none"} // path order; a node without the label is last
	for i, name := range order {
		if view.Tree.Node(i) != name || view.Infos[i].Node().Name != name || !slices.Equal(view.Free[i], want[name]) {
			t.Errorf("node %d is %s with %v, want %s with %v", i, view.Tree.Node(i), view.Free[i], name, want[name])
		}
	}
}

func TestIndex_FollowsGenerations(t *testing.T) {
	a, b := info(node("a", "c1")), info(node("b", "c1"))
	index := snapshot.NewIndex(nil, "", nodehealth.Rules{})
	first := update(t, index, []fwk.NodeInfo{a, b}, nil)
	tree := first.Tree

	b.AddPodInfo(podInfo(t, pod("p", list("1", "0"))))
	view := update(t, index, []fwk.NodeInfo{a, b}, nil)
	if view.Tree != tree || view.Free[1][1] != 7000 {
		t.Errorf("after a pod came: same tree %v, free %v", view.Tree == tree, view.Free[1])
	}
	// Changes without a new generation are not read, and a new object of the same generation is taken over.
	clone := a.Snapshot()
	view = update(t, index, []fwk.NodeInfo{clone, b}, nil)
	if view.Infos[0] != clone || view.Tree != tree {
		t.Error("the index keeps pointers of an old snapshot")
	}
}

func TestIndex_RebuildsTreeOnlyForLevels(t *testing.T) {
	tests := map[string]struct {
		change func([]*corev1.Node) []*corev1.Node
		same   bool
	}{
		"nothing":               {func(n []*corev1.Node) []*corev1.Node { return n }, true},
		"a label of a job":      {label("resource.nvidia.com/computeDomain", "x"), true},
		"a level's label":       {label(topology.LabelClique, "c2"), false},
		"a label makes a level": {label("topology.kubernetes.io/zone", "z"), false},
		"a node more":           {func(n []*corev1.Node) []*corev1.Node { return append(n, node("z", "c1")) }, false},
		"a node less":           {func(n []*corev1.Node) []*corev1.Node { return n[1:] }, false},
		"another order":         {func(n []*corev1.Node) []*corev1.Node { return []*corev1.Node{n[1], n[0]} }, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			nodes := []*corev1.Node{node("a", "c1"), node("b", "c1")}
			index := snapshot.NewIndex(nil, "", nodehealth.Rules{})
			before := update(t, index, infos(nodes), nil).Tree
			after := update(t, index, infos(test.change([]*corev1.Node{nodes[0].DeepCopy(), nodes[1].DeepCopy()})), nil)
			if got := before == after.Tree; got != test.same {
				t.Errorf("the tree is the same: %v, want %v", got, test.same)
			}
			if len(after.Free) != after.Tree.Len() || len(after.Infos) != after.Tree.Len() {
				t.Errorf("%d nodes, %d capacities, %d infos", after.Tree.Len(), len(after.Free), len(after.Infos))
			}
		})
	}
}

func TestIndex_OutermostKey(t *testing.T) {
	nodes := []*corev1.Node{node("a", "c1"), node("b", "c2"), node("c", "c1")}
	nodes[0].Labels["example.com/room"] = "west"
	nodes[1].Labels["example.com/room"] = "west"
	view := update(t, snapshot.NewIndex(nil, "example.com/room", nodehealth.Rules{}), infos(nodes), nil)
	if got := view.Tree.Levels(); len(got) != 2 || got[0].Key != "example.com/room" || got[1].Name != "clique" {
		t.Fatalf("levels are %v", got)
	}
	a, _ := view.Tree.Index("a")
	b, _ := view.Tree.Index("b")
	inA, _ := view.Tree.Domain(a, 0)
	if inB, _ := view.Tree.Domain(b, 0); inA.String() != inB.String() {
		t.Errorf("rooms %s and %s", inA, inB)
	}
}

// Nodes without NVIDIA's label are in the NVLink domain that another label names, unless NVIDIA's discovery is at work
// among them. Levels that are configured say themselves whether there is a clique.
func TestIndex_CliquesOfOtherDialects(t *testing.T) {
	const domain = "accelerator.topograph.run/domain"
	nodes := []*corev1.Node{node("a", ""), node("b", ""), node("c", "")}
	for _, n := range nodes[:2] {
		n.Labels[domain] = "rack-1"
	}
	cliques := func(index *snapshot.Index) string {
		view := update(t, index, infos(nodes), nil)
		level, ok := view.Tree.Level("clique")
		var text []string
		for i := range nodes {
			clique := ""
			if in, inside := view.Tree.Domain(i, level); ok && inside {
				clique = in.Path[len(in.Path)-1]
			}
			text = append(text, view.Tree.Node(i)+":"+clique)
		}
		return strings.Join(text, " ")
	}
	index := snapshot.NewIndex(nil, "", nodehealth.Rules{})
	if got, want := cliques(index), "a:rack-1 b:rack-1 c:"; got != want {
		t.Errorf("cliques are %s, want %s", got, want)
	}
	nodes[0] = nodes[0].DeepCopy()
	nodes[0].Labels[topology.LabelClique] = "u.1"
	if got, want := cliques(index), "a:u.1 b: c:"; got != want {
		t.Errorf("with NVIDIA's discovery the cliques are %s, want %s", got, want)
	}
	for keys, want := range map[string]string{
		domain:                              "a: b: c:",
		domain + " " + topology.LabelClique: "a:u.1 b: c:",
	} {
		levels, err := topology.Configured(strings.Fields(keys))
		if err != nil {
			t.Fatal(err)
		}
		if got := cliques(snapshot.NewIndex(levels, "", nodehealth.Rules{})); got != want {
			t.Errorf("with the levels %s the cliques are %s, want %s", keys, got, want)
		}
	}
}

func label(key, value string) func([]*corev1.Node) []*corev1.Node {
	return func(nodes []*corev1.Node) []*corev1.Node {
		nodes[0].Labels[key] = value
		return nodes
	}
}

func infos(nodes []*corev1.Node) []fwk.NodeInfo {
	out := make([]fwk.NodeInfo, len(nodes))
	for i, n := range nodes {
		out[i] = info(n)
	}
	return out
}

func podInfo(t *testing.T, p *corev1.Pod) fwk.PodInfo {
	t.Helper()
	out, err := framework.NewPodInfo(p)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
