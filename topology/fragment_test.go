package topology_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

func TestFragmentation(t *testing.T) {
	one := func(members int) []topology.Share { return []topology.Share{{Members: members, Weight: 1}} }
	for name, c := range map[string]struct {
		free                      string
		total                     int64
		mix                       []topology.Share
		block, rack, node, places int64
	}{
		"whole racks":           {"22|22/22|22", 2, one(4), 0, 0, 16, 16},
		"a rest in each rack":   {"21|21/21|21", 2, one(2), 0, 4, 4, 12},
		"larger than any rack":  {"22|22", 2, one(5), 3, 8, 8, 8},
		"that goes in segments": {"22|21", 2, []topology.Share{{Members: 5, Weight: 1, Segment: 3}}, 2, 1, 7, 7},
		"weights":               {"21|21", 2, []topology.Share{{Members: 2, Weight: 3}, {Members: 3, Weight: 1}}, 0, 6, 12, 24},
		"nothing free":          {"00|00", 2, one(2), 0, 0, 0, 0},
		"no mix":                {"22|22", 2, []topology.Share{{Members: 0, Weight: 1}, {Members: 1}}, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, c.free)
			for range y.ledger.Free {
				y.ledger.Total = append(y.ledger.Total, topology.Capacity{c.total})
			}
			all := topology.Fragmentation(y.ledger, topology.Shape{Demand: topology.Capacity{1}}, c.mix)
			for i, want := range []int64{c.block, c.rack, c.node} {
				if all[i].Stranded != want || all[i].Free != c.places {
					t.Errorf(
						"%s: %d of %d, want %d of %d",
						all[i].Level.Name,
						all[i].Stranded,
						all[i].Free,
						want,
						c.places,
					)
				}
			}
			if f := all[1].Fraction(); f != float64(c.rack)/math.Max(float64(c.places), 1) {
				t.Error(f)
			}
		})
	}
}

// Nothing that the slices given do not reach is counted, and nothing panics.
func TestFragmentation_OfLittle(t *testing.T) {
	mix := []topology.Share{{Members: 2, Weight: 1}}
	if all := topology.Fragmentation(topology.Ledger{}, topology.Shape{}, mix); all != nil {
		t.Error(all)
	}
	y := newYard(t, "111")
	y.ledger.Free = y.ledger.Free[:1]
	s := topology.Shape{Demand: topology.Capacity{1}, Barred: []string{""}}
	if all := topology.Fragmentation(y.ledger, s, mix); len(all) != 3 || all[2].Stranded != 1 || all[2].Free != 1 {
		t.Error(all)
	}
}

// The formula of Fragment, by label.
func TestFragmentation_IsTheFormula(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		y, g := wild(t, random)
		for _, free := range y.ledger.Free {
			y.ledger.Total = append(y.ledger.Total, topology.Capacity{free[0] + int64(random.IntN(2)), free[1]})
		}
		if random.IntN(2) == 0 {
			y.ledger.Total = nil
		}
		var mix []topology.Share
		for range 1 + random.IntN(3) {
			mix = append(
				mix,
				topology.Share{Members: 1 + random.IntN(6), Weight: int64(random.IntN(4)), Segment: random.IntN(3)},
			)
		}
		for at, f := range topology.Fragmentation(y.ledger, g.Shapes[0], mix) {
			if want := formula(y.ledger, g.Shapes[0], mix, at); math.Abs(f.Fraction()-want) > 1e-9 {
				t.Errorf("seed %d level %d: %d of %d, want %f", seed, at, f.Stranded, f.Free, want)
			}
		}
	}
}

func formula(l topology.Ledger, s topology.Shape, mix []topology.Share, level int) float64 {
	free, caps, weights, all := map[string]int{}, map[string]int{}, 0.0, 0
	for node := range l.Len() {
		name := l.Tree.Node(node)
		if d, ok := l.Tree.Domain(node, level); ok {
			name = d.String()
		}
		if s.Barred != nil && s.Barred[node] != "" {
			continue
		}
		n := fill(l.Free[node], s.Demand)
		free[name], all = free[name]+n, all+n
		if l.Total != nil {
			caps[name] += fill(l.Total[node], s.Demand)
		}
	}
	largest := 0
	for _, n := range free {
		largest = max(largest, n)
	}
	sum := 0.0
	for _, share := range mix {
		weights += float64(share.Weight)
		for name, n := range free {
			size, most := share.Members, largest
			if l.Total != nil {
				most = caps[name]
			}
			if size > most && share.Segment > 0 {
				size = share.Segment
			}
			sum += float64(share.Weight) * float64(n-size*(n/size))
		}
	}
	if weights == 0 || all == 0 {
		return 0
	}
	return sum / weights / float64(all)
}

// fill puts members on a node one by one.
func fill(free, demand topology.Capacity) int {
	for n := 0; ; n++ {
		for r, d := range demand {
			if free[r] < int64(n+1)*d {
				return n
			}
		}
	}
}

func TestLargest(t *testing.T) {
	for name, c := range map[string]struct {
		gang func(g *topology.Gang)
		want int
	}{
		"anywhere":       {nil, 9},
		"one block":      {func(g *topology.Gang) { g.Required = "block" }, 5},
		"one rack":       {func(g *topology.Gang) { g.Required = "rack" }, 3},
		"one node":       {func(g *topology.Gang) { g.Required = topology.LevelNode }, 2},
		"whole segments": {func(g *topology.Gang) { g.Segment = topology.Segment{Size: 2, Level: "rack"} }, 6},
		"one on a node":  {func(g *topology.Gang) { g.PerNode = 1 }, 6},
		"two in a rack":  {func(g *topology.Gang) { g.Spread = topology.Spread{Max: 2, Level: "rack"} }, 7},
		"a segment a block": {func(g *topology.Gang) {
			g.Segment = topology.Segment{Size: 3, Level: "rack"}
			g.Spread = topology.Spread{Max: 1, Level: "block"}
		}, 6},
		"nothing is taken":   {func(g *topology.Gang) { g.Shapes[0].Demand = nil; g.PerNode = 3 }, 24},
		"no limit on a node": {func(g *topology.Gang) { g.Shapes[0].Demand = nil }, math.MaxInt32},
	} {
		t.Run(name, func(t *testing.T) {
			g := gangOf(100)
			if c.gang != nil {
				c.gang(&g)
			}
			if n, err := topology.Largest(newYard(t, "21|20/10|21").ledger, g); n != c.want || err != nil {
				t.Error(n, err)
			}
		})
	}
	if _, err := topology.Largest(topology.Ledger{}, gangOf(1)); err == nil {
		t.Error("no error without a tree")
	}
}

func TestLargest_IsWhatFits(t *testing.T) {
	for seed := range uint64(2000) {
		y, g := wild(t, rand.New(rand.NewPCG(seed, 4)))
		for i := range g.Members {
			g.Members[i] = topology.Member{Shape: 0}
		}
		g.Min = 0
		if g.Spares.Nodes > 0 { // a choice of spares that is not proven, unless a node holds one member
			g.PerNode = 1
		}
		got, err := topology.Largest(y.ledger, g)
		if err != nil {
			continue
		}
		want := 0
		for n := 1; n <= 40; n++ {
			g.Members = make([]topology.Member, n)
			if g.Segment.Size > 0 && n%g.Segment.Size != 0 {
				continue
			}
			if _, short, err := topology.Place(y.ledger, g); short == nil && err == nil {
				want = n
			}
		}
		if got != want {
			t.Errorf("seed %d: %d, Place finds places for %d: %+v", seed, got, want, g.Segment)
		}
	}
}
