package topology_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockstep-project/lockstep/topology"
)

func TestReserve(t *testing.T) {
	for name, c := range map[string]struct {
		free    string
		running func(y *yard)
		gang    func(g *topology.Gang)
		members int
		at      int64
		nodes   []int
	}{
		"now": {"11", func(y *yard) { y.run("a", 0, 5, 0) }, nil, 2, topology.Now, []int{0, 1}},
		"the second end makes the last room": {"000", func(y *yard) {
			y.run("a", 0, 30, 0)
			y.run("b", 0, 10, 1)
			y.run("c", 0, 20, 2)
		}, nil, 2, 20, []int{1, 2}},
		"together at one instant": {"00", func(y *yard) {
			y.run("a", 0, 10, 0)
			y.run("b", 0, 10, 1)
		}, nil, 2, 10, []int{0, 1}},
		"the rack that is empty first": {"00|00", func(y *yard) {
			y.run("a", 0, 10, 0)
			y.run("b", 0, 40, 1)
			y.run("c", 0, 30, 2, 3)
		}, func(g *topology.Gang) { g.Required = "rack" }, 2, 30, []int{2, 3}},
		"who has no known end stays": {"00", func(y *yard) {
			y.run("a", 0, topology.EndUnknown, 0)
			y.run("b", 0, -7, 1)
		}, nil, 1, -7, []int{1}},
		"an elastic gang's minimum": {"000", func(y *yard) {
			y.run("a", 0, 10, 0)
			y.run("b", 0, 20, 1)
			y.run("c", 0, 30, 2)
		}, func(g *topology.Gang) { g.Min = 2 }, 3, 20, []int{0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			y, g := newYard(t, c.free), gangOf(c.members)
			c.running(y)
			if c.gang != nil {
				c.gang(&g)
			}
			r, short, err := topology.Reserve(y.ledger, g, y.running)
			if short != nil || err != nil || r.At != c.at || !slices.Equal(r.Placement.Nodes, c.nodes) {
				t.Errorf("%+v %v %v, want %v at %d", r, short, err, c.nodes, c.at)
			}
		})
	}
}

func TestReserve_SaysWhy(t *testing.T) {
	y := newYard(t, "000")
	y.run("a", 0, 10, 0)
	y.run("b", 0, topology.EndUnknown, 1, 2)
	_, short, err := topology.Reserve(y.ledger, gangOf(3), y.running)
	if err != nil || short == nil || short.Nearest[0].Holds != 1 || short.Full != 2 {
		t.Error(short, err)
	}
}

func TestAdmit(t *testing.T) {
	// The head waits for all of rack r0 until 100; rack r1 has a node for others, and one that is busy for long.
	fleet := func() (*yard, topology.Gang) {
		y := newYard(t, "10|10")
		y.run("a", 0, 100, 1)
		y.run("b", 0, topology.EndUnknown, 3)
		head := gangOf(2)
		head.Name, head.Required = "head", "rack"
		return y, head
	}
	for name, c := range map[string]struct {
		gang  func(g *topology.Gang)
		end   int64
		nodes []int
		short string
	}{
		"it ends in time":         {nil, 100, []int{0}, ""},
		"it leaves the head room": {nil, 101, []int{2}, ""},
		"nobody knows its end":    {nil, topology.EndUnknown, []int{2}, ""},
		"too large": {
			func(g *topology.Gang) { g.Members = make([]topology.Member, 2) }, 101, nil,
			"2 nodes barred by reserved for head",
		},
		"its own rules stand": {
			func(g *topology.Gang) { g.Shapes[0].Barred = []string{"", "cordoned", "cordoned", ""} }, 101, nil,
			"2 nodes barred by cordoned",
		},
	} {
		t.Run(name, func(t *testing.T) {
			y, head := fleet()
			r, short, err := topology.Reserve(y.ledger, head, y.running)
			if short != nil || err != nil || r.At != 100 {
				t.Fatal(r, short, err)
			}
			g := gangOf(1)
			if c.gang != nil {
				c.gang(&g)
			}
			p, short, err := r.Admit(y.ledger, y.running, head, g, c.end)
			if err != nil || !slices.Equal(p.Nodes, c.nodes) {
				t.Error(p.Nodes, short, err)
			}
			if (short != nil) != (c.short != "") {
				t.Fatal(short)
			}
			if short != nil && (!strings.Contains(short.String(), c.short) || short.Never) {
				t.Errorf("%v\nlacks: %s", short, c.short)
			}
		})
	}
}

// commit lets a gang run.
func (y *yard) commit(c topology.Gang, p topology.Placement, end int64) *yard {
	after := &yard{y.without(0), slices.Clone(y.running)}
	r := topology.Running{Name: c.Name, End: end}
	for i, node := range p.Nodes {
		if c.Members[i].Placed {
			continue
		}
		d := c.Shapes[c.Members[i].Shape].Demand
		r.Holds = append(r.Holds, topology.Held{Node: node, Demand: d})
		for k, n := range d {
			after.ledger.Free[node][k] -= n
		}
	}
	after.running = append(after.running, r)
	return after
}

func TestReserve_IsEarliestAndAdmitNeverDelays(t *testing.T) {
	rounds := 2000
	if testing.Short() {
		rounds = 500
	}
	waited, passed := 0, 0
	for seed := range uint64(rounds) {
		random := rand.New(rand.NewPCG(seed, 2))
		y, head := wild(t, random)
		before := y.without(0)
		r, short, err := topology.Reserve(y.ledger, head, y.running)
		if err != nil {
			continue
		}
		if at, ok := y.scan(head); ok != (short == nil) || ok && at != r.At {
			if head.Spares.Nodes == 0 { // else Place itself may find less when more is free
				t.Fatalf("seed %d: %+v %v, a scan says %v at %d", seed, r, short, ok, at)
			}
		}
		if short != nil {
			continue
		}
		if r.At > topology.Now {
			waited++
		}
		c := wildGang(random, y.ledger.Len())
		c.Members[0].Placed = false
		end := []int64{1, 2, 3, 4, topology.EndUnknown}[random.IntN(5)]
		p, short, err := r.Admit(y.ledger, y.running, head, c, end)
		if !cmp.Equal(before.Free, y.ledger.Free) {
			t.Fatalf("seed %d: the ledger was changed", seed)
		}
		if short != nil || err != nil {
			continue
		}
		passed++
		after := y.commit(c, p, end)
		if again, short, err := topology.Reserve(
			after.ledger,
			head,
			after.running,
		); short != nil || err != nil ||
			again.At > r.At {
			t.Errorf(
				"seed %d: the head starts at %d, and at %d (%v, %v) with %v before it",
				seed,
				r.At,
				again.At,
				short,
				err,
				p.Nodes,
			)
		}
	}
	if waited < rounds/20 || passed < rounds/10 {
		t.Errorf("%d heads waited, %d gangs passed, of %d", waited, passed, rounds)
	}
}

// scan asks at every instant.
func (y *yard) scan(g topology.Gang) (int64, bool) {
	for _, at := range []int64{topology.Now, 1, 2, 3, 4} {
		gone := uint(0)
		for i, r := range y.running {
			if at != topology.Now && r.End <= at {
				gone |= 1 << i
			}
		}
		if _, short, err := topology.Place(y.without(gone), g); short == nil && err == nil {
			return at, true
		}
	}
	return 0, false
}

func BenchmarkReserve(b *testing.B) {
	l, running := stalls(b, 16384, 1000)
	for i := range running {
		running[i].End = int64(i * 7919 % 1000)
	}
	g := gangOf(512)
	g.Segment = topology.Segment{Size: 8, Level: "rack"}
	b.ReportAllocs()
	for b.Loop() {
		if _, short, err := topology.Reserve(l, g, running); short != nil || err != nil {
			b.Fatal(short, err)
		}
	}
}
