package knapsack_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// draw makes parts as trees offer them: few points, costs that grow unevenly, the first layer always possible. Some are
// the same as the one before, as those of vertices of one class are.
func draw(r *rand.Rand, m *knapsack.Mixer) []knapsack.ParetoFront {
	parts := make([]knapsack.ParetoFront, 1+r.IntN(8))
	for i := range parts {
		if i > 0 && r.IntN(3) == 0 {
			parts[i] = parts[i-1]
			continue
		}
		parts[i] = make(knapsack.ParetoFront, m.Layers().Count())
		for e := range parts[i] {
			if e > 0 && r.IntN(3) == 0 {
				continue
			}
			p := knapsack.Point{Cost: int64(e * r.IntN(3))}
			for range 1 + r.IntN(5) {
				parts[i][e] = append(parts[i][e], p)
				p.N += int32(1 + r.IntN(4))
				p.Cost += int64(1 + r.IntN(9))
			}
		}
	}
	return parts
}

// brute tries every point of every part.
func brute(m *knapsack.Mixer, parts []knapsack.ParetoFront, whole knapsack.Share) int64 {
	if len(parts) == 0 {
		if whole.Layer == 0 && (whole.Units == 0 || whole.Units < 0 && !m.Exact()) {
			return 0
		}
		return knapsack.Never
	}
	least := int64(knapsack.Never)
	m.Layers().Splits(whole.Layer, func(e, f int) {
		for _, p := range parts[0][e] {
			if rest := brute(
				m,
				parts[1:],
				knapsack.Share{Units: whole.Units - int(p.N), Layer: f},
			); rest != knapsack.Never {
				least = min(least, p.Cost+rest)
			}
		}
	})
	return least
}

func TestMixer_CheapestDivision(t *testing.T) {
	placed := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 0))
		m := knapsack.NewMixer(knapsack.NewLayers([][]int{nil, {1}, {2}, {1, 1}}[r.IntN(4)]), r.IntN(3) == 0)
		parts := draw(r, m)
		whole := knapsack.Share{Units: r.IntN(8 * len(parts)), Layer: m.Layers().Full()}
		want := brute(m, parts, whole)
		rests := m.Rests(parts, whole.Units)
		if got := m.At(rests[0][whole.Layer], whole.Units); got != want {
			t.Fatalf("seed %d: %v of %v cost %d, not %d", seed, whole, parts, got, want)
		}
		narrow, got, ok := m.Reduce(parts, whole)
		if ok && got != want {
			t.Fatalf("seed %d: narrowed, %v of %v cost %d, not %d", seed, whole, parts, got, want)
		}
		if want == knapsack.Never {
			continue
		}
		placed++
		shares := divided(t, m, parts, rests, whole)
		if ok && !slices.Equal(divided(t, m, parts, narrow, whole), shares) {
			t.Fatalf("seed %d: narrowed, %v of %v are not shared as %v", seed, whole, parts, shares)
		}
		for i, s := range shares {
			want -= m.At(parts[i][s.Layer], s.Units)
		}
		if want != 0 {
			t.Fatalf("seed %d: the shares %v of %v in %v cost %d less than the whole", seed, shares, whole, parts, want)
		}
	}
	if placed < 1000 {
		t.Errorf("only %d fit", placed)
	}
}

// divided returns the shares of parts that are given one after another.
func divided(
	t *testing.T,
	m *knapsack.Mixer,
	parts, rests []knapsack.ParetoFront,
	whole knapsack.Share,
) []knapsack.Share {
	t.Helper()
	var shares []knapsack.Share
	for i, part := range parts {
		s := m.Choose(part, rests[i], rests[i+1], whole)
		shares = append(shares, s)
		whole.Units, whole.Layer = max(whole.Units-s.Units, 0), whole.Layer-s.Layer
	}
	if whole != (knapsack.Share{}) {
		t.Fatalf("the shares %v leave %v", shares, whole)
	}
	return shares
}

func TestLayers_AddUp(t *testing.T) {
	l := knapsack.NewLayers([]int{2, 1}).With(1)
	if l.Count() != 12 || l.Full() != 11 || l.Sum(l.Full()) != 4 {
		t.Errorf("%d layers, the last of %d", l.Count(), l.Sum(l.Full()))
	}
	splits := 0
	l.Splits(l.Full(), func(x, y int) {
		if splits++; l.Sum(x)+l.Sum(y) != 4 || x+y != l.Full() {
			t.Errorf("%d and %d", x, y)
		}
	})
	if splits != l.Count() {
		t.Errorf("%d splits", splits)
	}
}
