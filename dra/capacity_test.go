package dra_test

import (
	"fmt"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"

	"github.com/lockstep-project/lockstep/dra"
	"github.com/lockstep-project/lockstep/topology"
)

// cards is a node with 16 network cards; the first 8 are fast.
func cards() dra.Fleet {
	slice := &resourcev1.ResourceSlice{Spec: resourcev1.ResourceSliceSpec{
		Driver: "dra.net", NodeName: new("n0"), Pool: resourcev1.ResourcePool{Name: "n0", ResourceSliceCount: 1},
	}}
	for i := range 16 {
		slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{
			Name: fmt.Sprintf("nic-%02d", i), Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
				"fast": {BoolValue: new(i < 8)},
			},
		})
	}
	return dra.Fleet{
		Inventory: dra.NewInventory([]*resourcev1.ResourceSlice{slice}, node("n0")), Ledger: dra.NewLedger(),
	}
}

// fastLast asks for cards of any kind, which the allocator takes first, and for as many fast ones.
func fastLast(n int) *resourcev1.ResourceClaim {
	return claim("cards", fmt.Sprintf("any %d dranet.net", n),
		fmt.Sprintf(`fast %d dranet.net|device.attributes["dra.net"].fast`, n))
}

// TestCapacity_UnknownIsBarred: the allocator gives the fast cards away first, and its search is cut off. The node may
// have room, but the in-tree plugin would search it for seconds while all other gangs wait.
func TestCapacity_UnknownIsBarred(t *testing.T) {
	tree, err := topology.NewTree(nil, []topology.Node{{Name: "n0"}})
	if err != nil {
		t.Fatal(err)
	}
	fast := holder("before", "dra.net/n0/nic-00")
	const cut = "not known: the search for devices took more than 4096 steps"
	for _, c := range []struct {
		name  string
		cards int
		taken *resourcev1.ResourceClaim
		want  string
	}{
		{"cut off", 8, nil, "[[0]] [[0]] [n0] [" + cut + "]"},
		{"full now, cut off if all were free", 8, fast, "[[0]] [[0]] [] [" + cut + "]"},
		{"found", 5, nil, "[[1]] [[1]] [] []"},
		{"never", 9, nil, "[[0]] [[0]] [] [request fast needs 9 devices of class dranet.net: 8 devices, 8 free]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			fleet := cards()
			if c.taken != nil {
				fleet.Ledger.Set(c.taken)
			}
			none := make([]topology.Capacity, 1)
			ledger := topology.Ledger{Tree: tree, Free: none, Total: none}
			gang := topology.Gang{Shapes: make([]topology.Shape, 1), Members: []topology.Member{{Name: "w-0"}}}
			f := dra.NewFitter(dra.DefaultFeatures(), 0)
			d := f.Demand(lookup, fastLast(c.cards))
			q, err := f.Capacity(t.Context(), fleet, ledger, gang, []*dra.Demand{d})
			if err != nil {
				t.Fatal(err)
			}
			barred := q.Gang.Shapes[0].Barred
			if barred[0] == "" {
				barred = nil
			}
			if got := fmt.Sprint(q.Ledger.Free, q.Ledger.Total, q.Unknown, barred); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// TestFitter_ForgetsDemands: each claim names a value that no device has, so each is another demand. Their memory is
// bounded, and a demand that is read again and again remains the same.
func TestFitter_ForgetsDemands(t *testing.T) {
	f, fleet := dra.NewFitter(dra.DefaultFeatures(), 0), cards()
	ask := func(value string) *dra.Demand {
		t.Helper()
		selector := fmt.Sprintf(`device.attributes["dra.net"].fast && device.driver != %q`, value)
		d := f.Demand(lookup, claim("c", "nic 1 dranet.net|"+selector))
		if fit, err := f.Fit(t.Context(), fleet, "n0", d); err != nil || fit.Pods != 8 {
			t.Fatalf("%s: %+v, %v", value, fit, err)
		}
		return d
	}
	first := ask("first")
	for i := range 1500 {
		ask(fmt.Sprint("value-", i))
		if !ask("first").Same(first) {
			t.Fatalf("after %d others, the demand is another one", i+1)
		}
	}
	if demands, seen := f.Kept(fleet.Inventory); demands > 1024 || seen > 1 {
		t.Errorf("%d demands and %d views of one pool are remembered", demands, seen)
	}
}
