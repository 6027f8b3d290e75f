package topology_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

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
