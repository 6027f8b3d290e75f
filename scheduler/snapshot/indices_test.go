package snapshot_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/nodehealth"
	"github.com/lockstep-project/lockstep/scheduler/snapshot"
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

// Whatever keys were required before, a view has the required key as its outermost level, and says the same as one made anew.
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
