package topology_test

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/topology"
)

// wild is a random yard of up to eight gangs, nodes of two resources, and a gang with random rules.
func wild(tb testing.TB, random *rand.Rand) (*yard, topology.Gang) {
	tb.Helper()
	var free strings.Builder
	size := 1 + random.IntN(3)
	for range 1 + random.IntN(3) {
		for range 1 + random.IntN(3) {
			for range 1 + random.IntN(3) {
				free.WriteByte(byte('0' + random.IntN(size+1)))
			}
			free.WriteByte('|')
		}
		free.WriteByte('/')
	}
	y := newYard(tb, free.String())
	for i := range y.ledger.Free {
		y.ledger.Free[i] = append(y.ledger.Free[i], int64(random.IntN(4)))
	}
	for r := range random.IntN(9) {
		running := topology.Running{
			Name: fmt.Sprint(
				"r",
				r,
			),
			Cost: int64(random.IntN(6)),
			End:  []int64{1, 2, 3, 4, topology.EndUnknown}[random.IntN(5)],
		}
		for range 1 + random.IntN(4) {
			running.Holds = append(running.Holds, topology.Held{
				Node: random.IntN(
					y.ledger.Len(),
				),
				Demand: topology.Capacity{int64(random.IntN(size + 1)), int64(random.IntN(2))},
			})
		}
		y.running = append(y.running, running)
	}
	return y, wildGang(random, y.ledger.Len())
}

func wildGang(random *rand.Rand, nodes int) topology.Gang {
	g := gangOf(1 + random.IntN(7))
	levels := []string{"block", "rack", topology.LevelNode}
	if random.IntN(2) == 0 {
		g.Required = levels[random.IntN(3)]
	}
	if random.IntN(3) == 0 {
		g.Segment = topology.Segment{
			Size:  1 + random.IntN(3),
			Level: levels[random.IntN(3)],
			Equal: random.IntN(2) == 0,
		}
	}
	if random.IntN(3) == 0 {
		g.Spread = topology.Spread{Max: 1 + random.IntN(3), Level: levels[random.IntN(3)]}
	}
	if random.IntN(4) == 0 {
		g.Spares = topology.Spares{Nodes: 1, Level: levels[random.IntN(2)]}
	}
	if random.IntN(3) == 0 {
		g.PerNode = 1 + random.IntN(2)
	}
	if random.IntN(4) == 0 {
		g.Min = 1 + random.IntN(len(g.Members))
	}
	if random.IntN(3) == 0 {
		g.Shapes[0].Demand = topology.Capacity{1, 1}
	}
	if random.IntN(3) == 0 { // a second kind
		g.Shapes = append(g.Shapes, topology.Shape{Demand: topology.Capacity{0, 1}})
		g.Members[random.IntN(len(g.Members))].Shape = 1
	}
	if random.IntN(4) == 0 {
		g.Shapes[0].Barred = make([]string, nodes)
		g.Shapes[0].Barred[random.IntN(nodes)] = "cordoned"
	}
	if random.IntN(8) == 0 {
		g.Members[0].Placed, g.Members[0].Node = true, random.IntN(nodes)
	}
	return g
}

// cheapest tries all sets of running gangs.
func (y *yard) cheapest(g topology.Gang) (cost int64, fewest int, ok bool) {
	for gone := range uint(1) << len(y.running) {
		if _, short, err := topology.Place(y.without(gone), g); short != nil || err != nil {
			continue
		}
		c := int64(0)
		for i, r := range y.running {
			if gone&(1<<i) != 0 {
				c += r.Cost
			}
		}
		if n := bits.OnesCount(gone); !ok || c < cost || c == cost && n < fewest {
			cost, fewest, ok = c, n, true
		}
	}
	return cost, fewest, ok
}

func TestEvict_IsCheapest(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 500
	}
	evicted := 0
	for seed := range uint64(rounds) {
		y, g := wild(t, rand.New(rand.NewPCG(seed, 1)))
		before := y.without(0)
		e, short, err := topology.Evict(y.ledger, g, y.running)
		_, all, wrong := topology.Place(y.without(1<<len(y.running)-1), g)
		if (err != nil) != (wrong != nil) {
			t.Fatalf("seed %d: error %v, Place says %v", seed, err, wrong)
		}
		if err != nil {
			continue
		}
		if !cmp.Equal(before.Free, y.ledger.Free) {
			t.Fatalf("seed %d: the ledger was changed", seed)
		}
		cost, fewest, ok := y.cheapest(g)
		if g.Spares.Nodes > 0 && (!e.Optimal() || short != nil) {
			continue // Place itself finds less when more is free there
		}
		if ok != (short == nil) {
			t.Fatalf("seed %d: %+v, all subsets say %v at %d", seed, e, ok, cost)
		}
		if short != nil {
			if diff := cmp.Diff(all, short); diff != "" {
				t.Fatalf("seed %d: shortfall (-with all gone +got):\n%s", seed, diff)
			}
			continue
		}
		if e.Cost != cost || len(e.Victims) != fewest || !e.Optimal() {
			t.Errorf(
				"seed %d: evicts %v at %d (bound %d), all subsets say %d of them at %d",
				seed,
				e.Victims,
				e.Cost,
				e.Bound,
				fewest,
				cost,
			)
		}
		gone := uint(0)
		for _, v := range e.Victims {
			gone |= 1 << v
		}
		if p, _, _ := topology.Place(y.without(gone), g); !cmp.Equal(p, e.Placement) {
			t.Errorf("seed %d: placement %+v, Place says %+v", seed, e.Placement, p)
		}
		if len(e.Victims) > 0 {
			evicted++
		}
	}
	if evicted < rounds/10 {
		t.Errorf("only %d of %d fleets needed victims", evicted, rounds)
	}
}
