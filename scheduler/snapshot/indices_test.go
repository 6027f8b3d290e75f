package snapshot_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/topology"
)

// keyedFleet are nodes with a clique and with many label keys that are no level.
func keyedFleet(nodes, keys int) []fwk.NodeInfo {
	fleet := make([]fwk.NodeInfo, nodes)
	for i := range fleet {
		n := node(fmt.Sprint("n", i), fmt.Sprint("c", i/18))
		for k := range keys {
			n.Labels[fmt.Sprint("example.com/key", k)] = fmt.Sprint("v", i%(k+2))
		}
		fleet[i] = info(n)
	}
	return fleet
}

// Whatever keys were required before, a view has the required key as its outermost level, and says the same as one made
// anew.
func TestIndices_ViewHasTheRequiredKey(t *testing.T) {
	fleet, of := keyedFleet(40, 12), snapshot.NewIndices(nil, nodehealth.Rules{})
	for step := range 60 {
		key := fmt.Sprint("example.com/key", step*7%12)
		view, err := of.View(fleet, []corev1.ResourceName{gpu}, key)
		if err != nil {
			t.Fatal(err)
		}
		want, err := snapshot.NewIndex(nil, key, nodehealth.Rules{}).Update(fleet, []corev1.ResourceName{gpu})
		if err != nil {
			t.Fatal(err)
		}
		if level, ok := view.Tree.Level(key); !ok || level != 0 {
			t.Fatalf("step %d: %s is level %d, %t", step, key, level, ok)
		}
		if text := difference(t, view, want, fleet); text != "" {
			t.Fatalf("step %d: %s", step, text)
		}
	}
	if view, err := of.View(fleet, nil, "example.com/none"); err != nil || len(view.Tree.Levels()) != 1 {
		t.Errorf("a key that no node carries makes a level: %v, %v", view.Tree.Levels(), err)
	}
}

// Gangs that require different keys, none of them a level, are evaluated in turn.
func BenchmarkIndices_AlternatingKeys(b *testing.B) {
	for _, nodes := range []int{1_000, 4_000, 10_000} {
		b.Run(fmt.Sprint(nodes, "nodes"), func(b *testing.B) {
			fleet, of := keyedFleet(nodes, 4), snapshot.NewIndices(nil, nodehealth.Rules{})
			for i := 0; b.Loop(); i++ {
				if _, err := of.View(fleet, nil, fmt.Sprint("example.com/key", i%4)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A pod may name any number of resources, and what it names is retained for every node: only resources that a node
// offers, or devices serve, have a column. All others share one, and no node has any of that.
func TestIndices_ResourcesThatNoNodeOffersShareAColumn(t *testing.T) {
	nodes := []fwk.NodeInfo{info(node("a", "c1")), info(node("b", "c1"))}
	x := snapshot.NewIndices(nil, nodehealth.Rules{})
	waiting := pod("p", list("1", "1"))
	waiting.Spec.NodeName = ""
	requests := waiting.Spec.Containers[0].Resources.Requests
	requests["served.example.com/gpu"] = resource.MustParse("1")
	for i := range 1000 {
		requests[corev1.ResourceName(fmt.Sprintf("x%03d.example.com/a", i))] = resource.MustParse("1")
	}
	served := func(name corev1.ResourceName) bool { return name == "served.example.com/gpu" }
	view, err := x.View(nodes, x.Offered(nodes, snapshot.Resources([]*corev1.Pod{waiting}), served), "")
	if err != nil {
		t.Fatal(err)
	}
	want := []corev1.ResourceName{
		corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		snapshot.Unoffered, gpu, "served.example.com/gpu",
	}
	if got := view.Resources(); !slices.Equal(got, want) {
		t.Errorf("columns %v, want %v", got, want)
	}
	gang, err := view.Gang(&schedulingv1beta1.PodGroup{}, []*corev1.Pod{waiting}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	const text = "x000.example.com/a, x001.example.com/a, x002.example.com/a, x003.example.com/a, x004.example.com/a, " +
		"x005.example.com/a, x006.example.com/a, x007.example.com/a and 992 others"
	if gang.Resources[4] != text || gang.Shapes[0].Demand[4] != 1 {
		t.Errorf("takes %d of %q", gang.Shapes[0].Demand[4], gang.Resources[4])
	}
	if _, short, err := topology.Place(view.Ledger(nil), gang); err != nil || short == nil {
		t.Errorf("the gang has a place: %v, %v", short, err)
	}
}
