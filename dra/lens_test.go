package dra_test

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lockstep-project/lockstep/dra"
)

// The literals of a selector are any text. One that joins the names of two attributes, written by another tenant
// before, does not make a demand that reads these attributes look as if it read neither.
func TestFitter_LiteralsAreNoNames(t *testing.T) {
	var slices []*resourcev1.ResourceSlice
	for _, name := range []string{"n0", "n1"} {
		yes := resourcev1.DeviceAttribute{BoolValue: new(name == "n0")}
		slices = append(
			slices,
			&resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: resourcev1.ResourceSliceSpec{
				Driver: "dra.net", NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, ResourceSliceCount: 1},
				Devices: []resourcev1.Device{
					{
						Name:       "nic",
						Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"fast": yes, "wide": yes},
					},
				},
			}},
		)
	}
	fleet := dra.Fleet{Inventory: dra.NewInventory(slices, node("n0"), node("n1")), Ledger: dra.NewLedger()}
	f := dra.NewFitter(dra.DefaultFeatures(), 0)
	ask := func(at, selector string) int {
		t.Helper()
		fit, err := f.Fit(t.Context(), fleet, at, f.Demand(lookup, claim("c", "nic 1 dranet.net|"+selector)))
		if err != nil {
			t.Fatal(err)
		}
		return fit.Pods
	}
	if got := ask("n0", `"fast wide" == "fast wide" && "attributes" != "dra.net"`); got != 1 {
		t.Fatalf("%d pods fit", got)
	}
	const both = `device.attributes["dra.net"].fast && device.attributes["dra.net"].wide`
	if first, second := ask("n0", both), ask("n1", both); first != 1 || second != 0 {
		t.Errorf("%d and %d pods fit, want 1 and none", first, second)
	}
}
