package topology_test

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/topology"
)

// yard is a fleet of two blocks of two racks or so, in which gangs run.
type yard struct {
	ledger  topology.Ledger
	running []topology.Running
}

// yardLevels are blocks of racks.
func yardLevels() []topology.Level {
	return []topology.Level{
		{Name: "block", Key: "test/block", Weight: 400},
		{Name: "rack", Key: "test/rack", Weight: 100},
	}
}

// newYard makes a node per number of free places, "|" ending a rack and "/" a block.
func newYard(tb testing.TB, free string) *yard {
	tb.Helper()
	var nodes []topology.Node
	y := &yard{}
	block, rack := 0, 0
	for _, c := range free {
		switch c {
		case '/':
			block, rack = block+1, 0
		case '|':
			rack++
		default:
			nodes = append(nodes, topology.Node{Name: fmt.Sprintf("n%d", len(nodes)), Labels: map[string]string{
				"test/block": fmt.Sprint("b", block), "test/rack": fmt.Sprint("r", rack),
			}})
			y.ledger.Free = append(y.ledger.Free, topology.Capacity{int64(c - '0')})
		}
	}
	tree, err := topology.NewTree(yardLevels(), nodes)
	if err != nil {
		tb.Fatal(err)
	}
	y.ledger.Tree = tree
	return y
}

// run adds a gang that holds one place on each of the nodes.
func (y *yard) run(name string, cost, end int64, nodes ...int) {
	r := topology.Running{Name: name, Cost: cost, End: end}
	for _, n := range nodes {
		r.Holds = append(r.Holds, topology.Held{Node: n, Demand: topology.Capacity{1}})
	}
	y.running = append(y.running, r)
}

// without is the ledger after some gangs have left: of these, bit by bit.
func (y *yard) without(gone uint) topology.Ledger {
	l := y.ledger
	l.Free = make([]topology.Capacity, len(y.ledger.Free))
	for i, free := range y.ledger.Free {
		l.Free[i] = slices.Clone(free)
	}
	for i, r := range y.running {
		if gone&(1<<i) == 0 {
			continue
		}
		for _, h := range r.Holds {
			for k, d := range h.Demand {
				l.Free[h.Node][k] += d
			}
		}
	}
	return l
}

func gangOf(members int) topology.Gang {
	return topology.Gang{
		Name:    "new",
		Members: make([]topology.Member, members),
		Shapes:  []topology.Shape{{Demand: topology.Capacity{1}}},
	}
}

func TestEvict(t *testing.T) {
	for name, c := range map[string]struct {
		free    string
		running func(y *yard)
		gang    func(g *topology.Gang)
		members int
		want    []int
		cost    int64
	}{
		"there is room": {"11|00", func(y *yard) { y.run("a", 1, 0, 2) }, nil, 2, nil, 0},
		"the cheaper one": {"10|00", func(y *yard) {
			y.run("a", 5, 0, 1)
			y.run("b", 3, 0, 2)
		}, nil, 2, []int{1}, 3},
		"only the required rack counts": {"10|00", func(y *yard) {
			y.run("a", 5, 0, 1)
			y.run("b", 3, 0, 2)
			y.run("c", 3, 0, 3)
		}, func(g *topology.Gang) { g.Required = "rack" }, 2, []int{0}, 5},
		"the fewest of equal cost": {"00", func(y *yard) {
			y.run("a", 2, 0, 0)
			y.run("b", 2, 0, 1)
			y.run("c", 4, 0, 0, 1)
		}, func(g *topology.Gang) { g.PerNode = 1 }, 2, []int{2}, 4},
		"whole gangs, the smaller of equal ones": {"00|00", func(y *yard) {
			y.run("a", 4, 0, 0, 1, 2)
			y.run("b", 4, 0, 0, 1)
		}, nil, 2, []int{1}, 4},
		"a victim that the cheapest ones make needless": {"0000", func(y *yard) {
			y.run("a", 1, 0, 0)
			y.run("b", 5, 0, 1, 2, 3)
			y.run("c", 9, 0, 0, 1, 2, 3)
		}, func(g *topology.Gang) { g.PerNode = 1 }, 3, []int{1}, 5},
		"the placement that costs less": {"10/0|01", func(y *yard) {
			y.run("a", 4, 0, 2)
			y.run("b", 4, 0, 3)
		}, func(g *topology.Gang) { g.Required = "block" }, 2, []int{1}, 4},
		"nobody whose nodes are barred": {"000", func(y *yard) {
			y.run("a", 1, 0, 0)
			y.run("b", 2, 0, 1)
		}, func(g *topology.Gang) { g.Shapes[0].Barred = []string{"cordoned", "", ""} }, 1, []int{1}, 2},
		"an elastic gang's minimum": {"0000", func(y *yard) {
			y.run("a", 1, 0, 0)
			y.run("b", 2, 0, 1)
		}, func(g *topology.Gang) { g.Min = 1 }, 2, []int{0}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			y, g := newYard(t, c.free), gangOf(c.members)
			c.running(y)
			if c.gang != nil {
				c.gang(&g)
			}
			e, short, err := topology.Evict(y.ledger, g, y.running)
			if short != nil || err != nil {
				t.Fatal(short, err)
			}
			if !slices.Equal(e.Victims, c.want) || e.Cost != c.cost || !e.Optimal() || len(e.Placement.Nodes) == 0 {
				t.Errorf("evicts %v at %d (bound %d), places at %v", e.Victims, e.Cost, e.Bound, e.Placement.Nodes)
			}
		})
	}
}

func TestEvict_SaysWhy(t *testing.T) {
	y := newYard(t, "10|00")
	y.run("a", 1, 0, 1)
	g := gangOf(3)
	g.Required = "rack"
	_, short, err := topology.Evict(y.ledger, g, y.running)
	if err != nil || short == nil {
		t.Fatal(short, err)
	}
	if near := short.Nearest[0]; near.Holds != 2 || near.Lacks != 1 {
		t.Errorf("nearest %+v, want the rack that holds 2 when a has left", near)
	}
}

func TestEvict_Refuses(t *testing.T) {
	for name, c := range map[string]struct {
		running topology.Running
		want    error
	}{
		"no such node":    {topology.Running{Name: "a", Holds: []topology.Held{{Node: 9}}}, topology.ErrNode},
		"negative node":   {topology.Running{Name: "a", Holds: []topology.Held{{Node: -1}}}, topology.ErrNode},
		"negative demand": {topology.Running{Name: "a", Holds: []topology.Held{{Demand: topology.Capacity{-1}}}}, topology.ErrNegative},
		"negative cost":   {topology.Running{Name: "a", Cost: -1}, topology.ErrNegative},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, "10")
			running := []topology.Running{c.running}
			_, _, err := topology.Evict(y.ledger, gangOf(2), running)
			var input *topology.InputError
			if !errors.Is(err, c.want) || !errors.As(err, &input) || input.Of != "running gang a" {
				t.Errorf("error %v, want %v", err, c.want)
			}
			if _, _, err = topology.Reserve(y.ledger, gangOf(2), running); !errors.Is(err, c.want) {
				t.Errorf("Reserve says %v, want %v", err, c.want)
			}
		})
	}
}

// Costs so large that their sum runs over still order the gangs.
func TestEvict_DearGangs(t *testing.T) {
	y := newYard(t, "0|00")
	y.run("a", math.MaxInt64, 0, 0)
	y.run("b", math.MaxInt64-9, 0, 1)
	y.run("c", math.MaxInt64/2, 0, 2)
	e, short, err := topology.Evict(y.ledger, gangOf(1), y.running)
	if short != nil || err != nil || !slices.Equal(e.Victims, []int{2}) {
		t.Error(e, short, err)
	}
	if e, short, err = topology.Evict(y.ledger, gangOf(3), y.running); short != nil || err != nil || e.Cost < 0 {
		t.Error(e, short, err)
	}
}

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

// Accelerator domains that cross racks: no single tree has both whole.
func TestEvict_WhereDomainsCross(t *testing.T) {
	crossed := 0
	for seed := range uint64(250) {
		random := rand.New(rand.NewPCG(seed, 6))
		y, g := wild(t, random)
		levels := []topology.Level{
			{Name: "block", Key: "test/block"},
			{Name: "rack", Key: "test/rack"},
			{Name: "clique", Key: "test/clique", Weight: 700, Accelerator: true},
		}
		var nodes []topology.Node
		for range y.ledger.Len() {
			nodes = append(nodes, topology.Node{Name: fmt.Sprint("n", len(nodes)), Labels: map[string]string{
				"test/block": strconv.Itoa(random.IntN(2)), "test/rack": strconv.Itoa(random.IntN(2)),
				"test/clique": strconv.Itoa(random.IntN(3)),
			}})
		}
		tree, err := topology.NewTree(levels, nodes)
		if err != nil {
			t.Fatal(err)
		}
		y.ledger.Tree = tree
		if !tree.Nested() {
			crossed++
		}
		if random.IntN(2) == 0 {
			g.Required = "clique"
		}
		g.Spares = topology.Spares{}
		e, short, err := topology.Evict(y.ledger, g, y.running)
		if err != nil {
			continue
		}
		cost, _, ok := y.cheapest(g)
		if ok != (short == nil) || ok && (e.Cost != cost || !e.Optimal()) {
			t.Errorf(
				"seed %d: evicts %v at %d (bound %d), all subsets say %v at %d",
				seed,
				e.Victims,
				e.Cost,
				e.Bound,
				ok,
				cost,
			)
		}
	}
	if crossed < 50 {
		t.Errorf("only %d fleets cross", crossed)
	}
}

// Segments of whole racks: the gangs of the cheapest racks are evicted, however many sets of gangs there are to try.
func TestEvict_ManySegments(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 5))
	y := newYard(t, strings.Repeat("00000000|", 96))
	racks := make([]int64, 96)
	for i := range 2 * len(racks) {
		cost := 1 + random.Int64N(1000)
		y.run(fmt.Sprint("gang-", i), cost, 0, 4*i, 4*i+1, 4*i+2, 4*i+3)
		racks[i/2] += cost
	}
	slices.Sort(racks)
	want := int64(0)
	for _, cost := range racks[:12] {
		want += cost
	}
	g := gangOf(12 * 8)
	g.Segment = topology.Segment{Size: 8, Level: "rack"}
	e, short, err := topology.Evict(y.ledger, g, y.running)
	if short != nil || err != nil || e.Cost != want || e.Bound > want {
		t.Errorf(
			"%d of %d victims at %d (bound %d), want %d %v %v",
			len(e.Victims),
			len(y.running),
			e.Cost,
			e.Bound,
			want,
			short,
			err,
		)
	}
	t.Logf("bound %d of %d", e.Bound, e.Cost)
}

// stalls fills a fleet of racks of 16 with gangs of up to 32 whole nodes, in path order but for every seventh node.
func stalls(tb testing.TB, nodes, gangs int) (topology.Ledger, []topology.Running) {
	tb.Helper()
	s := shape{"racks", yardLevels(), []int{16, 16}, 1}
	t, err := topology.NewTree(s.levels, s.fleet(nodes))
	if err != nil {
		tb.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 1))
	l := topology.Ledger{Tree: t, Free: make([]topology.Capacity, nodes)}
	running := make([]topology.Running, gangs)
	for i := range l.Free {
		gang := (i*gangs/nodes + random.IntN(2)) % gangs
		if i%7 == 0 {
			gang = random.IntN(gangs)
		}
		l.Free[i] = topology.Capacity{0}
		running[gang].Holds = append(running[gang].Holds, topology.Held{Node: i, Demand: topology.Capacity{1}})
	}
	for i := range running {
		running[i].Name = fmt.Sprint("gang-", i)
		running[i].Cost = int64(len(running[i].Holds)) * int64(60+random.IntN(5000))
	}
	return l, running
}

func BenchmarkEvict(b *testing.B) {
	for _, size := range [][2]int{{512, 100}, {16384, 1000}} {
		l, running := stalls(b, size[0], size[1])
		even := slices.Clone(running)
		for i := range even {
			even[i].Cost = int64(len(even[i].Holds)) * 60
		}
		for _, c := range []struct {
			name string
			gang func() topology.Gang
			even bool
		}{
			{"rack", func() topology.Gang { g := gangOf(12); g.Required = "rack"; return g }, false},
			{"rack-even", func() topology.Gang { g := gangOf(12); g.Required = "rack"; return g }, true},
			{"block", func() topology.Gang { g := gangOf(100); g.Required = "block"; return g }, false},
			{"anywhere", func() topology.Gang { return gangOf(size[0] / 4) }, false},
			{"anywhere-even", func() topology.Gang { return gangOf(size[0] / 4) }, true},
			{"segments", func() topology.Gang {
				g := gangOf(size[0] / 8)
				g.Segment = topology.Segment{Size: 8, Level: "rack"}
				return g
			}, false},
			{"short-segment", func() topology.Gang {
				g := gangOf(size[0]/8 + 3)
				g.Segment = topology.Segment{Size: 8, Level: "rack"}
				return g
			}, false},
			{"two-kinds", func() topology.Gang {
				g := gangOf(100)
				g.Required = "block"
				g.Shapes = append(g.Shapes, topology.Shape{Demand: topology.Capacity{0}})
				g.Members[0].Shape = 1
				return g
			}, false},
			{"two-kinds-anywhere", func() topology.Gang {
				g := gangOf(100)
				g.Shapes = append(g.Shapes, topology.Shape{Demand: topology.Capacity{0}})
				g.Members[0].Shape = 1
				return g
			}, false},
			{"node", func() topology.Gang { g := gangOf(1); g.Required = topology.LevelNode; return g }, false},
		} {
			b.Run(fmt.Sprintf("nodes=%d/running=%d/gang=%s", size[0], size[1], c.name), func(b *testing.B) {
				g, who := c.gang(), running
				if c.even {
					who = even
				}
				b.ReportAllocs()
				gap := 0.0
				for b.Loop() {
					e, short, err := topology.Evict(l, g, who)
					if short != nil || err != nil {
						b.Fatal(short, err)
					}
					gap = float64(e.Cost-e.Bound) / float64(max(e.Bound, 1))
				}
				b.ReportMetric(100*gap, "gap-%")
			})
		}
	}
}
