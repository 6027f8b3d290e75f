package dra_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/lockstep-project/lockstep/dra"
)

// fits returns the answers of every node of the fleet.
func fits(t failer, ask func(string) (dra.Fit, error), s *scene) string {
	t.Helper()
	var text strings.Builder
	for _, n := range s.nodes {
		fit, err := ask(n.Name)
		if err != nil {
			t.Fatalf("fit: %v", err)
		}
		fmt.Fprintf(&text, "%s %+v\n", n.Name, fit)
	}
	return text.String()
}

// TestLedger_ChangesEqualRebuild turns one cluster into another, object by object, and holds the answers at the end
// against those of an inventory, a ledger and a fitter that know nothing of the first.
func TestLedger_ChangesEqualRebuild(t *testing.T) {
	f := dra.NewFitter(dra.DefaultFeatures(), 1<<20)
	each(t, 10, func(t *rapid.T, old *scene, r *rand.Rand) {
		now := draw(r)
		fleet := old.fleet()
		d := f.Demand(now.class, now.claims...)
		fits(t, func(n string) (dra.Fit, error) { return f.Fit(t.Context(), fleet, n, d) }, old)
		change(fleet, old, now)
		got := fits(t, func(n string) (dra.Fit, error) { return f.Fit(t.Context(), fleet, n, d) }, now)
		fresh := f.Forgetful()
		again := fresh.Demand(now.class, now.claims...)
		want := fits(t, func(n string) (dra.Fit, error) { return fresh.Fit(t.Context(), now.fleet(), n, again) }, now)
		if got != want {
			t.Fatalf("%s\nchanged from\n%s\ngot\n%swant\n%s", now, old, got, want)
		}
	})
}

// TestFitter_ClassesAreSound changes one thing of a scene after another: the allocations, or one device. A fitter that
// has seen all its states answers like one that has seen none.
func TestFitter_ClassesAreSound(t *testing.T) {
	f := dra.NewFitter(dra.DefaultFeatures(), 1<<20)
	each(t, 10, func(t *rapid.T, s *scene, r *rand.Rand) {
		for range 3 {
			d := f.Demand(s.class, s.claims...)
			fleet := s.fleet()
			got := fits(t, func(n string) (dra.Fit, error) { return f.Fit(t.Context(), fleet, n, d) }, s)
			fresh := f.Forgetful()
			again := fresh.Demand(s.class, s.claims...)
			want := fits(t, func(n string) (dra.Fit, error) { return fresh.Fit(t.Context(), fleet, n, again) }, s)
			if got != want {
				t.Fatalf("%s\nremembered\n%sfresh\n%s", s, got, want)
			}
			vary(s, r)
		}
	})
}

// vary changes the allocations or draws one device anew.
func vary(s *scene, r *rand.Rand) {
	if r.IntN(2) == 0 {
		s.taken = nil
		s.take(r)
		return
	}
	spec := &s.slices[r.IntN(len(s.slices))].Spec
	if len(spec.Devices) == 0 {
		return
	}
	d := &spec.Devices[r.IntN(len(spec.Devices))]
	other := drawDevice(r, d.Name, spec.Pool.Name)
	other.ConsumesCounters, other.NodeName, other.AllNodes, other.NodeSelector = d.ConsumesCounters, d.NodeName, d.AllNodes, d.NodeSelector
	*d = other
}

// change applies the difference of two scenes.
func change(fleet dra.Fleet, old, now *scene) {
	kept := map[string]bool{}
	for _, n := range now.nodes {
		kept[n.Name] = true
		fleet.Inventory.SetNode(n)
	}
	for _, s := range now.slices {
		kept[s.Name] = true
		fleet.Inventory.SetSlice(s)
	}
	for _, c := range now.taken {
		kept[c.Name] = true
		fleet.Ledger.Set(c)
	}
	for _, n := range old.nodes {
		if !kept[n.Name] {
			fleet.Inventory.RemoveNode(n.Name)
		}
	}
	for _, s := range old.slices {
		if !kept[s.Name] {
			fleet.Inventory.RemoveSlice(s.Name)
		}
	}
	for _, c := range old.taken {
		if !kept[c.Name] {
			fleet.Ledger.Remove(c.UID)
		}
	}
}

// TestWithoutClaims_EqualsNeverAllocated evaluates a scene without some claims: the fits are those of a scene in which
// these were never allocated. The ledger itself does not change.
func TestWithoutClaims_EqualsNeverAllocated(t *testing.T) {
	f := dra.NewFitter(dra.DefaultFeatures(), 1<<20)
	each(t, 10, func(t *rapid.T, s *scene, r *rand.Rand) {
		d := f.Demand(s.class, s.claims...)
		fleet := s.fleet()
		before := fits(t, func(n string) (dra.Fit, error) { return f.Fit(t.Context(), fleet, n, d) }, s)
		var victims []types.UID
		var left []*resourcev1.ResourceClaim
		for _, c := range s.taken {
			if r.IntN(2) == 0 {
				victims = append(victims, c.UID)
			} else {
				left = append(left, c)
			}
		}
		branch := dra.Fleet{Inventory: fleet.Inventory, Ledger: fleet.Ledger.WithoutClaims(victims...)}
		got := fits(t, func(n string) (dra.Fit, error) { return f.Fit(t.Context(), branch, n, d) }, s)
		never := dra.Fleet{Inventory: fleet.Inventory, Ledger: dra.NewLedger(left...)}
		want := fits(t, func(n string) (dra.Fit, error) { return f.Fit(t.Context(), never, n, d) }, s)
		if got != want {
			t.Fatalf("%s\nwithout %v\ngot\n%swant\n%s", s, victims, got, want)
		}
		if after := fits(
			t,
			func(n string) (dra.Fit, error) { return f.Fit(t.Context(), fleet, n, d) },
			s,
		); after != before {
			t.Fatalf("%s\nthe what-if changed the ledger: before\n%safter\n%s", s, before, after)
		}
	})
}
