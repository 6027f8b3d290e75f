package knapsack_test

import (
	"math/rand/v2"
	"testing"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// draw makes parts as trees offer them: few points, costs that grow unevenly, the first layer always possible.
func draw(r *rand.Rand, m *knapsack.Mixer) []knapsack.Front {
	parts := make([]knapsack.Front, 1+r.IntN(8))
	for i := range parts {
		parts[i] = make(knapsack.Front, m.Layers().Count())
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
func brute(m *knapsack.Mixer, parts []knapsack.Front, whole knapsack.Share) int64 {
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

func TestCheapestDivision(t *testing.T) {
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
		if narrow, got, ok := m.Narrow(parts, whole); ok && got != want {
			t.Fatalf("seed %d: narrowed, %v of %v cost %d, not %d", seed, whole, parts, got, want)
		} else if ok && want != knapsack.Never {
			rests = narrow
		}
		if want != knapsack.Never {
			placed++
			if got := divided(m, parts, rests, whole); got != want {
				t.Fatalf("seed %d: the shares of %v in %v cost %d, not %d", seed, whole, parts, got, want)
			}
		}
	}
	if placed < 1000 {
		t.Errorf("only %d fit", placed)
	}
}

// divided is what the shares cost that parts are given one after another.
func divided(m *knapsack.Mixer, parts, rests []knapsack.Front, whole knapsack.Share) int64 {
	total := int64(0)
	for i, part := range parts {
		s := m.Choose(part, rests[i], rests[i+1], whole)
		total += m.At(part[s.Layer], s.Units)
		whole.Units, whole.Layer = max(whole.Units-s.Units, 0), whole.Layer-s.Layer
	}
	if whole != (knapsack.Share{}) {
		return -1
	}
	return total
}

func TestLayersAddUp(t *testing.T) {
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
