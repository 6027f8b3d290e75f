package dra_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"k8s.io/dynamic-resource-allocation/cel"
	"pgregory.net/rapid"

	"github.com/lockstep-project/lockstep/dra"
)

// each holds a property against scenes drawn from two numbers that rapid draws (see topology's tests for why).
func each(t *testing.T, scenes int, property func(*rapid.T, *scene, *rand.Rand)) {
	t.Helper()
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64()
		r := rand.New(rand.NewPCG(seed.Draw(t, "seed"), seed.Draw(t, "stream")))
		for range scenes {
			property(t, draw(r), r)
		}
	})
}

// TestFit_EqualsAllocate is the promise of this room: however the devices look, whatever the claims ask for, a node
// takes as many pods as Kubernetes' allocator would give devices to, one after another, knowing the whole cluster. One
// fitter answers for all scenes, so nodes that it takes for equal have to be.
func TestFit_EqualsAllocate(t *testing.T) {
	const limit = 3
	fitter := dra.NewFitter(dra.DefaultFeatures(), 1<<20)
	compiled := cel.NewCache(100, cel.Features{EnableConsumableCapacity: true})
	// verdicts counts the answers by sort: the scenes must not all be of one sort.
	verdicts := map[string]int{}
	each(t, 30, func(t *rapid.T, s *scene, r *rand.Rand) {
		if r.IntN(3) == 0 {
			s = drawPairs(r)
		}
		fleet := s.fleet()
		d := fitter.Demand(s.class, s.claims...)
		for _, n := range s.nodes {
			want := native{s, compiled}.pods(t.Context(), t, n, limit)
			fit, err := fitter.Fit(t.Context(), fleet, n.Name, d)
			if err != nil {
				t.Fatalf("fit: %v", err)
			}
			if min(fit.Pods, limit) != want {
				t.Fatalf(
					"%s\nnode %s %v: fit says %+v, the allocator gives devices to %d",
					s,
					n.Name,
					n.Labels,
					fit,
					want,
				)
			}
			verdicts[sort(fit)]++
		}
	})
	t.Log(verdicts)
	for _, sort := range []string{"fits", "search", "condition", "fault"} {
		if verdicts[sort] == 0 {
			t.Errorf("no scene of the sort %q", sort)
		}
	}
}

// sort names the part of the fitter that gave the answer.
func sort(fit dra.Fit) string {
	switch {
	case fit.Pods > 0:
		return "fits"
	case strings.Contains(fit.Rule, "fails:"):
		return "fault"
	case strings.HasPrefix(fit.Rule, "no combination"):
		return "search"
	case strings.Contains(fit.Rule, "cannot all be had"):
		return "all"
	case strings.HasPrefix(fit.Rule, "allocate"):
		return "refused: " + fit.Rule
	}
	return "condition"
}
