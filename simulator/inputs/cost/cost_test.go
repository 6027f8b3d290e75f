package cost_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/inputs/cost"
	"github.com/lockstep-project/lockstep/topology"
)

// fleet is two pods of two racks of two nodes of eight accelerators. Nodes are 0 to 7, in the order of pods and racks.
func fleet(tb testing.TB, levels ...topology.Level) (*topology.Tree, []topology.Capacity) {
	tb.Helper()
	nodes := make([]topology.Node, 8)
	total := make([]topology.Capacity, len(nodes))
	for i := range nodes {
		nodes[i] = topology.Node{
			Name: fmt.Sprintf("n%d", i),
			Labels: map[string]string{
				"pod":    strconv.Itoa(i / 4),
				"rack":   strconv.Itoa(i / 2),
				"nvlink": strconv.Itoa(i / 2),
			},
		}
		total[i] = topology.Capacity{8}
	}
	if levels == nil {
		levels = []topology.Level{{Name: "pod", Key: "pod"}, {Name: "rack", Key: "rack"}}
	}
	tree, err := topology.NewTree(levels, nodes)
	if err != nil {
		tb.Fatal(err)
	}
	return tree, total
}

// round has bandwidths of 100, 10, 5 and 2.5 GB/s and no latency, so that times can be computed by hand.
func round() cost.Network {
	return cost.Network{
		Inside: cost.Link{MBps: 100_000}, Leaf: cost.Link{MBps: 10_000}, Spine: cost.Link{MBps: 5_000},
		Core: cost.Link{MBps: 2_500},
	}
}

func model(tb testing.TB, network cost.Network, slowdown int64) *cost.Model {
	tb.Helper()
	tree, total := fleet(tb)
	return cost.New(cost.Options{Tree: tree, Total: total, Network: network, Slowdown: slowdown, Startup: 1000})
}

// gang has so many members with so many accelerators each.
func gang(members int, accelerators int64) *topology.Gang {
	return &topology.Gang{
		Members: make([]topology.Member, members), Shapes: []topology.Shape{{Demand: topology.Capacity{accelerators}}},
	}
}

// An all-reduce of 1 GB by hand, in milliseconds. Inside a node of 8: 2·7/8·1000/100 = 17.5. Two nodes of a rack:
// 2·1/2·1000/(8·10) = 12.5 more; two racks, a node each: 1000/(8·5) = 25; two nodes each: 12.5; two pods, a node each:
// 1000/(8·2.5) = 50; two nodes each: 25.
func TestSlowdown_ByHand(t *testing.T) {
	const share = 300
	for name, c := range map[string]struct {
		members int
		each    int64
		nodes   []int
		want    int64
	}{
		"one node":            {2, 4, []int{3, 3}, 1000},
		"two nodes of a rack": {2, 8, []int{2, 3}, 1000},
		"two racks":           {2, 8, []int{1, 2}, 700 + 300*425/300}, // (17.5 + 25) / (17.5 + 12.5)
		"two pods":            {2, 8, []int{3, 4}, 700 + 300*675/300}, // (17.5 + 50) / 30
		"two racks, filled":   {4, 8, []int{0, 1, 2, 3}, 1000},        // 17.5 + 12.5 + 12.5, and nothing is faster
		"four racks":          {4, 8, []int{0, 2, 4, 6}, 700 + 477},   // (17.5 + 25 + 25) / 42.5, rounded up
		// 2·3/4·1000/100 = 15, and 1000/(4·10) = 25; in one node it is 17.5: 700 + 300·40/17.5, rounded up.
		"halves of two nodes":      {2, 4, []int{0, 1}, 1386},
		"a member without a place": {3, 8, []int{2, 3, -1}, 1000},
		"ranks do not matter":      {2, 8, []int{2, 1}, 700 + 300*425/300},
	} {
		t.Run(name, func(t *testing.T) {
			if got := model(t, round(), 1000).Slowdown(gang(c.members, c.each), c.nodes, share); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

// Latencies count once up and once down a tree: four nodes of two pods, one each, have log2(2) steps at two boundaries.
func TestSlowdown_Latency(t *testing.T) {
	network := round()
	network.Core.Latency = 10_000_000 // 10 ms: 2 steps add 20 ms to 67.5
	got := model(t, network, 1000).Slowdown(gang(2, 8), []int{3, 4}, 300)
	if want := int64(700 + 300*875/300); got != want {
		t.Errorf("got %d, want %d", got, want)
	}
}

// Inside an NVLink domain of two nodes, 16 accelerators are as fast as in one node; a quarter of it each in four
// domains is not.
func TestSlowdown_NVLinkDomains(t *testing.T) {
	tree, total := fleet(
		t,
		topology.Level{Name: "pod", Key: "pod"},
		topology.Level{Name: "nvlink", Key: "nvlink", Accelerator: true},
	)
	m := cost.New(cost.Options{Tree: tree, Total: total, Network: round(), Slowdown: 1000})
	if got := m.Slowdown(gang(2, 8), []int{2, 3}, 300); got != 1000 {
		t.Errorf("in one domain: %d", got)
	}
	// 2·15/16·10 = 18.75 in one domain. In two of one pod: 17.5 + 1000/(8·10) = 30, so 700 + 300·30/18.75 = 1180.
	if got := m.Slowdown(gang(2, 8), []int{1, 2}, 300); got != 1180 {
		t.Errorf("in two domains: %d, want 1180", got)
	}
}

// Off costs nothing; no placement is faster than the best, or slower than the bound that owners know.
func TestSlowdown_Bounds(t *testing.T) {
	var off *cost.Model
	if off.Slowdown(gang(2, 8), []int{3, 4}, 300) != 1000 || off.Greatest(gang(2, 8), 2, 300) != 1000 ||
		off.Assembly(5) != 0 {
		t.Error("no model costs something")
	}
	chance := rand.New(rand.NewPCG(1, 2))
	for _, network := range append(cost.Networks(), round()) {
		m := model(t, network, 1000)
		for range 500 {
			each := int64(1 + chance.IntN(8))
			g := gang(1+chance.IntN(8), each)
			nodes, free := make([]int, len(g.Members)), [8]int64{8, 8, 8, 8, 8, 8, 8, 8}
			for i := range nodes {
				for nodes[i] = chance.IntN(8); free[nodes[i]] < each; nodes[i] = chance.IntN(8) {
				}
				free[nodes[i]] -= each
			}
			got, bound := m.Slowdown(g, nodes, 350), m.Greatest(g, len(g.Members), 350)
			if got < 1000 || got > bound {
				t.Fatalf(
					"%s: %d members of %d on %v: %d, the bound is %d",
					network.Name,
					len(g.Members),
					each,
					nodes,
					got,
					bound,
				)
			}
		}
	}
}

// No possible placement on a homogeneous fleet is faster than the assumed best.
func TestBest_NothingIsFaster(t *testing.T) {
	m := model(t, round(), 1000)
	for members := 2; members <= 6; members++ {
		fastest := int64(1 << 40)
		nodes := make([]int, members)
		var all func(rank int)
		all = func(rank int) {
			if rank == members {
				fastest = min(fastest, m.Slowdown(gang(members, 8), nodes, 900))
				return
			}
			first := 0
			if rank > 0 {
				first = nodes[rank-1] + 1
			}
			for node := first; node < 8; node++ {
				nodes[rank] = node
				all(rank + 1)
			}
		}
		all(0)
		if fastest != 1000 {
			t.Errorf("the fastest placement of %d nodes has a slowdown of %d", members, fastest)
		}
	}
}

func TestShare_IsScaledAndBounded(t *testing.T) {
	class := cost.ClassOf("vc-1", "job-7", 600)
	for factor, want := range map[int64]int64{0: 0, 500: 175, 1000: 350, 2000: 700, 9000: 900} {
		if got := model(t, round(), factor).Share(class); got != want {
			t.Errorf("factor %d: share %d, want %d", factor, got, want)
		}
	}
	for _, c := range []struct {
		tenant, name string
		accelerators int64
		want         string
	}{
		{"", "a", 1, "1 accelerator"},
		{"", "a", 8, "2-8 accelerators"},
		{"", "a", 9, "9-64 accelerators"},
		{"pretrain", "a", 2048, "more accelerators"},
		{"evaluation", "evaluation-000001", 8, "evaluations"},
	} {
		if got := cost.ClassOf(c.tenant, c.name, c.accelerators).Name; got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
}

func TestStartup(t *testing.T) {
	m := model(t, round(), 1000)
	if m.Assembly(1) != 1 || m.Assembly(2) != 4 || m.Reload(8) != 60 || m.Reload(9) != 300 {
		t.Error(m.Assembly(1), m.Assembly(2), m.Reload(8), m.Reload(9))
	}
}

// Failures are those of a seed, at about their rates, of nodes that are there; half the rate draws about half as many.
func TestFailures(t *testing.T) {
	tree, _ := fleet(t)
	const years = 200 * 365 * 86_400
	outages := cost.Failures(tree, 3, years, 1000)
	if !reflect.DeepEqual(outages, cost.Failures(tree, 3, years, 1000)) {
		t.Error("a seed draws different failures")
	}
	single, racks := 0, 0
	back := make([]int64, tree.Len())
	for i, o := range outages {
		switch {
		case o.At < 0 || o.At >= years || o.Until < o.At+3600 || i > 0 && o.At < outages[i-1].At:
			t.Fatalf("outage %+v", o)
		case len(o.Nodes) == 1:
			single++
		default:
			racks++
		}
		for _, node := range o.Nodes {
			if o.At <= back[node] && back[node] > 0 {
				t.Fatalf("node %d fails at %d, and is away until %d", node, o.At, back[node])
			}
			back[node] = o.Until
		}
	}
	// 8 nodes · 200 years · 365 days · 6.5/1000 = 3796; 4 racks · 200 years · 0.44 = 357.
	if single < 3500 || single > 4000 || racks < 290 || racks > 420 {
		t.Errorf("%d failures of nodes, %d of racks", single, racks)
	}
	if half := len(cost.Failures(tree, 3, years, 500)); half < len(outages)*2/5 || half > len(outages)*3/5 {
		t.Errorf("half the rate has %d failures of %d", half, len(outages))
	}
	if len(cost.Failures(tree, 3, years, 0)) != 0 {
		t.Error("a rate of 0 has failures")
	}
}

func TestNetworkFor(t *testing.T) {
	for _, c := range []struct {
		fleet  string
		shared bool
		want   string
	}{
		{"c1", false, cost.SuperPODH100},
		{"c1x4", false, cost.SuperPODH100},
		{"c1-coreweave", false, cost.SuperPODH100},
		{"c2", false, cost.RoCEH100},
		{"c3", true, cost.SuperPODGB200},
		{"gb200-72", true, cost.SuperPODGB200},
		{"h100-64", false, cost.TaperedH100},
		{"my-cluster", false, cost.TaperedH100},
	} {
		if got := cost.NetworkFor(c.fleet, c.shared); got != c.want {
			t.Errorf("%s: %s", c.fleet, got)
		}
	}
	for _, name := range cost.NetworkNames() {
		if _, ok := cost.NetworkOf(name); !ok {
			t.Error(name)
		}
	}
}

// Training begins after assembly and reload; a nominal second takes 1.5 s; a checkpoint is written every 60 s of
// training.
func TestPace_ByHand(t *testing.T) {
	p := cost.Pace{Startup: 10, Slowdown: 1500, Saves: 60}
	if got := p.Takes(100); got != 160 {
		t.Errorf("100 s of work take %d s, want 10 + 150", got)
	}
	for ran, want := range map[int64][3]int64{5: {0, 0, 0}, 69: {59, 0, 0}, 70: {60, 60, 40}, 155: {145, 120, 80}} {
		if got := [3]int64{p.Trained(ran), p.Saved(ran), p.Work(p.Saved(ran))}; got != want {
			t.Errorf("after %d s: trained, kept, work %v, want %v", ran, got, want)
		}
	}
	m := model(t, round(), 1000)
	w := cost.Work{Gang: gang(2, 8), Least: 2, Share: 300, Saves: 60, Accelerators: 16}
	if got := m.Pace(w, []int{3, 4}); got != (cost.Pace{Startup: 4, Slowdown: 1375, Saves: 60}) {
		t.Errorf("the first run: %+v", got)
	}
	w.Done = 40
	if got := m.Pace(w, []int{2, 3}); got != (cost.Pace{Startup: 304, Slowdown: 1000, Saves: 60}) {
		t.Errorf("a run that resumes: %+v", got)
	}
	if slowest := m.Slowest(w); slowest.Startup != 304 || slowest.Slowdown < 1375 {
		t.Errorf("the slowest run: %+v", slowest)
	}
}

func TestParseFactor(t *testing.T) {
	for text, want := range map[string]int64{"off": 0, "": 0, "on": 1000, "published": 1000, "0.5": 500, "2": 2000, "0.001": 1} {
		if got, ok := cost.ParseFactor(text); !ok || got != want {
			t.Errorf("%q: %d, %v", text, got, ok)
		}
	}
	for _, text := range []string{"yes", "-1", "NaN", "1001", "0.0001", "Inf"} {
		if got, ok := cost.ParseFactor(text); ok {
			t.Errorf("%q: %d", text, got)
		}
	}
	s := cost.Settings{Network: cost.RoCEH100, Slowdown: 1000, Checkpoint: 1800, Failures: 2000}
	const want = "slowdown on (roce-h100), startup off, a checkpoint every 1800 s, failures 2"
	if got := s.String(); got != want || s.Off() || !(cost.Settings{Network: "x"}).Off() {
		t.Errorf("%q", got)
	}
}
