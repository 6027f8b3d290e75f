package held_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lockstep-project/lockstep/scheduler/held"
)

func cpu(n string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}
}

func TestSlotsAreKeptFromOthers(t *testing.T) {
	s := held.NewSlots()
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	s.Hold(a, []held.Slot{{Node: "n1", Room: cpu("1")}, {Node: "n1", Room: cpu("2")}})
	s.Hold(b, []held.Slot{{Node: "n1", Room: cpu("500m")}, {Node: "n2", Room: cpu("4")}})
	for _, test := range []struct {
		node string
		gang types.NamespacedName
		want string
	}{
		{"n1", a, "500m"}, {"n1", b, "3"}, {"n1", types.NamespacedName{}, "3500m"}, {"n2", b, "0"}, {"n2", a, "4"},
	} {
		on := s.On(test.node, test.gang)
		if got := on.Cpu(); got.Cmp(resource.MustParse(test.want)) != 0 {
			t.Errorf("held on %s against %v: %v, want %s", test.node, test.gang, got, test.want)
		}
		all := s.FromOthers(test.gang)[test.node]
		if got := all.Cpu(); got.Cmp(resource.MustParse(test.want)) != 0 {
			t.Errorf("of all that is held against %v, %s has %v, want %s", test.gang, test.node, got, test.want)
		}
	}
	s.Hold(a, []held.Slot{{Node: "n3", Room: cpu("1")}}) // replaces
	s.Release(b)
	if s.On("n1", types.NamespacedName{}) != nil || !s.For(a) || s.For(b) {
		t.Errorf("what was replaced or released is still held: %v", s.FromOthers(types.NamespacedName{}))
	}
}
