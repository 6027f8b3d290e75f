package topology_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/grid"
)

// rig is a fleet of tori, each node with one device.
type rig struct {
	ledger  topology.Ledger
	running []topology.Running
}

// torusNodes are the nodes of one torus.
func torusNodes(name string, size grid.Size, rings string) []topology.Node {
	var nodes []topology.Node
	for x := range size[0] {
		for y := range size[1] {
			for z := range size[2] {
				labels := map[string]string{
					topology.LabelTorus: name, topology.LabelTorusShape: size.String(),
					topology.LabelTorusAt: fmt.Sprintf("%d-%d-%d", x, y, z),
				}
				if rings != "" {
					labels[topology.LabelTorusRings] = rings
				}
				nodes = append(nodes, topology.Node{Name: fmt.Sprintf("%s-%d-%d-%d", name, x, y, z), Labels: labels})
			}
		}
	}
	return nodes
}

// newRig makes a fleet with all nodes free.
func newRig(tb testing.TB, nodes []topology.Node) *rig {
	tb.Helper()
	tree, err := topology.NewTree(topology.DetectLevels(nodes), nodes)
	if err != nil {
		tb.Fatal(err)
	}
	r := &rig{ledger: topology.Ledger{Tree: tree}}
	for range nodes {
		r.ledger.Free = append(r.ledger.Free, topology.Capacity{1})
		r.ledger.Total = append(r.ledger.Total, topology.Capacity{1})
	}
	return r
}

// take lets a gang run on these nodes.
func (r *rig) take(tb testing.TB, cost, end int64, names ...string) {
	tb.Helper()
	gang := topology.Running{Name: fmt.Sprint("r", len(r.running)), Cost: cost, End: end}
	for _, name := range names {
		node, ok := r.ledger.Tree.Index(name)
		if !ok {
			tb.Fatalf("no node %s", name)
		}
		r.ledger.Free[node] = topology.Capacity{0}
		gang.Holds = append(gang.Holds, topology.Held{Node: node, Demand: topology.Capacity{1}})
	}
	r.running = append(r.running, gang)
}

// boxOf is a gang of one member on each node of a box.
func boxOf(tb testing.TB, shape string) topology.Gang {
	tb.Helper()
	size, err := grid.ParseSize(shape)
	if err != nil {
		tb.Fatal(err)
	}
	g := topology.Gang{Name: "g", Box: size, Shapes: []topology.Shape{{Demand: topology.Capacity{1}}}}
	for i := range size.Cells() {
		g.Members = append(g.Members, topology.Member{Name: fmt.Sprint("g-", i)})
	}
	return g
}

// names are the nodes of a placement by rank.
func (r *rig) names(p topology.Placement) string {
	var out []string
	for _, node := range p.Nodes {
		out = append(out, r.ledger.Tree.Node(node))
	}
	return strings.Join(out, " ")
}

// TestPlace_Box fills boxes along their axes, around the ring where there is one, and names the nearest torus.
func TestPlace_Box(t *testing.T) {
	r := newRig(t, slices.Concat(torusNodes("a", grid.Size{1, 4, 1}, ""), torusNodes("b", grid.Size{1, 4, 1}, "y")))
	for _, torus := range []string{"a", "b"} {
		r.take(t, 1, 1, torus+"-0-1-0", torus+"-0-2-0")
	}
	g := boxOf(t, "2x1x1")
	p, short, err := topology.Place(r.ledger, g)
	if err != nil || short != nil || r.names(p) != "b-0-3-0 b-0-0-0" || !p.Optimal() {
		t.Errorf("placed on %s (%v, %v), want the ends of the ring", r.names(p), short, err)
	}
	r.take(t, 1, 1, "b-0-3-0")
	_, short, err = topology.Place(r.ledger, g)
	const want = "needs 2 members in one torus (lockstep.dev/torus); no torus has a free box of 2x1x1 nodes; nearest a: 1 of 2, " +
		"1 node full there; 5 nodes without room"
	if err != nil || short.String() != want {
		t.Errorf("got %v (%v), want %s", short, err, want)
	}
}

// TestPlace_BoxAroundMembersThatRun puts a lost member back into its box and nowhere else.
func TestPlace_BoxAroundMembersThatRun(t *testing.T) {
	r := newRig(t, torusNodes("a", grid.Size{2, 4, 1}, ""))
	g := boxOf(t, "2x2x1")
	for rank, name := range []string{"a-0-1-0", "a-0-2-0", "a-1-1-0"} {
		node, _ := r.ledger.Tree.Index(name)
		r.ledger.Free[node] = topology.Capacity{0}
		g.Members[rank].Placed, g.Members[rank].Node = true, node
	}
	p, short, err := topology.Place(r.ledger, g)
	if err != nil || short != nil || r.names(p) != "a-0-1-0 a-0-2-0 a-1-1-0 a-1-2-0" {
		t.Errorf("placed on %s (%v, %v)", r.names(p), short, err)
	}
	r.take(t, 1, 1, "a-1-2-0")
	if _, short, err = topology.Place(r.ledger, g); err != nil || short == nil {
		t.Errorf("placed beside its box: %v", err)
	}
}

// TestTorus_NodesThatContradict are in no torus: another shape, a cell that is taken, coordinates outside, a label that
// cannot be read.
func TestTorus_NodesThatContradict(t *testing.T) {
	nodes := torusNodes("a", grid.Size{1, 2, 1}, "")
	for i, labels := range []map[string]string{
		{topology.LabelTorusShape: "1x3x1", topology.LabelTorusAt: "0-2-0"},
		{topology.LabelTorusShape: "1x2x1", topology.LabelTorusAt: "0-1-0"},
		{topology.LabelTorusShape: "1x2x1", topology.LabelTorusAt: "0-2-0"},
		{topology.LabelTorusShape: "1x2x1", topology.LabelTorusAt: "0-1-0", topology.LabelTorusRings: "w"},
		{topology.LabelTorusShape: "1x2x1", topology.LabelTorusAt: "here"},
		{topology.LabelTorusShape: "1x2x1"},
	} {
		labels[topology.LabelTorus] = "a"
		nodes = append(nodes, topology.Node{Name: fmt.Sprint("z", i), Labels: labels})
	}
	r := newRig(t, nodes)
	p, short, err := topology.Place(r.ledger, boxOf(t, "1x2"))
	if err != nil || short != nil || r.names(p) != "a-0-0-0 a-0-1-0" {
		t.Errorf("placed on %s (%v, %v)", r.names(p), short, err)
	}
	moved := r.ledger.Tree.With(topology.Node{Name: "a-0-1-0", Labels: map[string]string{topology.LabelTorus: "a"}})
	if _, short, err := topology.Place(
		topology.Ledger{Tree: moved, Free: r.ledger.Free},
		boxOf(t, "1x2"),
	); err != nil ||
		short != nil {
		t.Errorf("a node that takes over a cell is not believed: %v, %v", short, err)
	}
}

// TestBox_BadInput checks rules that cannot be combined, and boxes that no torus could hold.
func TestBox_BadInput(t *testing.T) {
	r := newRig(t, torusNodes("a", grid.Size{2, 4, 1}, ""))
	for want, change := range map[string]func(g *topology.Gang){
		"gang g: box of 2x3x3: no domain of the level could ever hold it; a is 2x4x1":                                                          func(g *topology.Gang) { *g = boxOf(t, "2x3x3") },
		"gang g: box of 2x2x1 nodes for 3 members: the members are not a multiple of it":                                                       func(g *topology.Gang) { g.Members = g.Members[:3] },
		"gang g: box of 2x2x1: these rules cannot be combined; a box has members of one kind, and no segments, spread, spares or elastic size": func(g *topology.Gang) { g.Min = 2 },
		"gang g: box of 2x2x1 in one node: these rules cannot be combined; a box is in one torus: leave the required level out":                func(g *topology.Gang) { g.Required = "node" },
		"gang g: box of 2x2x1 with 2 members on a node, and the limit of 1 per node: these rules cannot be combined": func(g *topology.Gang) {
			g.Members, g.PerNode = slices.Concat(g.Members, g.Members), 1
		},
		"gang g: box of -1x2x1: it is negative; every extent is at least 1": func(g *topology.Gang) { g.Box[0] = -1 },
	} {
		g := boxOf(t, "2x2x1")
		change(&g)
		_, _, err := topology.Place(r.ledger, g)
		if input, ok := errors.AsType[*topology.InputError](err); !ok || input.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	flat := newRig(t, []topology.Node{{Name: "n"}})
	if _, _, err := topology.Place(flat.ledger, boxOf(t, "1x1")); !errors.Is(err, topology.ErrLevel) {
		t.Errorf("a fleet without tori: %v", err)
	}
}

// TestBox_AnswersLikeTheTwin compares decisions on random tori with an exhaustive search: whether a box is free, when
// one will be, and which gangs cost least.
func TestBox_AnswersLikeTheTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	placed, freed, never := 0, 0, 0
	for scene := range 600 {
		size := grid.Size{1 + r.IntN(3), 1 + r.IntN(3), 1 + r.IntN(3)}
		rings := []string{"", "x", "yz", "xyz"}[r.IntN(4)]
		y := newRig(t, torusNodes("a", size, rings))
		left := r.Perm(size.Cells())
		for len(left) > 0 && len(y.running) < 5 && r.IntN(5) > 0 {
			n := min(1+r.IntN(4), len(left))
			var names []string
			for _, node := range left[:n] {
				names = append(names, y.ledger.Tree.Node(node))
			}
			left = left[n:]
			switch r.IntN(4) {
			case 0: // stays for good
				y.take(t, 1, 1, names...)
				y.running = y.running[:len(y.running)-1]
			default:
				y.take(t, int64(1+r.IntN(5)), int64(r.IntN(6)), names...)
			}
		}
		g := boxOf(t, grid.Size{1 + r.IntN(2), 1 + r.IntN(2), 1 + r.IntN(2)}.String())
		free := twinBox(y, size, rings, g.Box, nil)
		p, short, err := topology.Place(y.ledger, g)
		if errors.Is(err, topology.ErrTooLarge) {
			continue
		}
		if err != nil || (short == nil) != free {
			t.Fatalf(
				"scene %d: torus %v %s, box %v: placed on %s, %v, %v; the twin says %v",
				scene,
				size,
				rings,
				g.Box,
				y.names(p),
				short,
				err,
				free,
			)
		}
		if free {
			placed++
		}
		cost, end := twinVictims(y, size, rings, g.Box), twinEnd(y, size, rings, g.Box)
		e, short, err := topology.Evict(y.ledger, g, y.running)
		if err != nil || (short == nil) != (cost >= 0) || short == nil && (e.Cost != cost || !e.Optimal()) {
			t.Fatalf(
				"scene %d: %d costs %d (bound %d), %v, %v; the twin says %d",
				scene,
				e.Victims,
				e.Cost,
				e.Bound,
				short,
				err,
				cost,
			)
		}
		at, fits, err := topology.Earliest(y.ledger, g, y.running)
		if err != nil || fits != (end >= -1) || fits && max(at.At, -1) != end {
			t.Fatalf("scene %d: starts at %d (%v, %v); the twin says %d", scene, at.At, fits, err, end)
		}
		switch {
		case cost > 0:
			freed++
		case cost < 0:
			never++
		}
	}
	if min(placed, freed, never) < 50 {
		t.Errorf("placed %d, freed %d, never %d: want 50 of each", placed, freed, never)
	}
}

// twinBox reports whether some box has only nodes that are free or held by gangs that have left. It steps from cell to
// cell.
func twinBox(y *rig, size grid.Size, rings string, box grid.Size, gone map[int]bool) bool {
	left := map[int]bool{}
	for i := range gone {
		for _, h := range y.running[i].Holds {
			left[h.Node] = true
		}
	}
	for _, turn := range box.Orientations() {
		for anchor := range size.Cells() {
			start := [3]int{anchor / (size[1] * size[2]), anchor / size[2] % size[1], anchor % size[2]}
			fits := turn[0] <= size[0] && turn[1] <= size[1] && turn[2] <= size[2]
			for i := range turn.Cells() {
				step := [3]int{i / (turn[1] * turn[2]), i / turn[2] % turn[1], i % turn[2]}
				var coordinates [3]int
				for axis := range start {
					at := start[axis] + step[axis]
					if at >= size[axis] && !strings.ContainsRune(rings, rune("xyz"[axis])) {
						fits = false
					}
					coordinates[axis] = at % size[axis]
				}
				node, _ := y.ledger.Tree.Index(
					fmt.Sprintf("a-%d-%d-%d", coordinates[0], coordinates[1], coordinates[2]),
				)
				fits = fits && (left[node] || y.ledger.Free[node][0] > 0)
			}
			if fits {
				return true
			}
		}
	}
	return false
}

// twinVictims is the least cost of any set of running gangs without which a box is free, -1 if there is none.
func twinVictims(y *rig, size grid.Size, rings string, box grid.Size) int64 {
	best := int64(-1)
	for set := range 1 << len(y.running) {
		gone, cost := map[int]bool{}, int64(0)
		for i := range y.running {
			if set>>i&1 == 1 {
				gone[i] = true
				cost += y.running[i].Cost
			}
		}
		if (best < 0 || cost < best) && twinBox(y, size, rings, box, gone) {
			best = cost
		}
	}
	return best
}

// twinEnd is the first end at which a box is free: -1 for now, -2 for never.
func twinEnd(y *rig, size grid.Size, rings string, box grid.Size) int64 {
	for end := int64(-1); end < 6; end++ {
		gone := map[int]bool{}
		for i, run := range y.running {
			if run.End <= end {
				gone[i] = true
			}
		}
		if twinBox(y, size, rings, box, gone) {
			return end
		}
	}
	return -2
}
