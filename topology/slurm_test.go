package topology_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

// slurmFleet is a fleet as Slurm describes it: BlockSizes, the base block first, or the sizes of leaf and further
// switches. Free is the number of idle nodes of each base block, which are its first ones.
type slurmFleet struct {
	sizes []int
	// weights of the sizes, 0 for the usual.
	weights []int64
	free    []int
}

// level returns the name of the blocks of a size.
func (f slurmFleet) level(size int) string { return fmt.Sprintf("block-%d", size) }

func (f slurmFleet) ledger(t *testing.T) topology.Ledger {
	t.Helper()
	var levels []topology.Level
	for i, size := range slices.Backward(f.sizes) {
		level := topology.Level{Name: f.level(size), Key: fmt.Sprintf("test/block-%d", size)}
		if f.weights != nil {
			level.Weight = f.weights[i]
		}
		levels = append(levels, level)
	}
	var nodes []topology.Node
	base := f.sizes[0]
	for i := range base * len(f.free) {
		n := topology.Node{Name: fmt.Sprintf("n%d", i), Labels: map[string]string{}}
		for _, size := range f.sizes {
			n.Labels[fmt.Sprintf("test/block-%d", size)] = fmt.Sprintf("b%d", i/size)
		}
		nodes = append(nodes, n)
	}
	tree, err := topology.NewTree(levels, nodes)
	if err != nil {
		t.Fatal(err)
	}
	l := topology.Ledger{Tree: tree}
	for i := range nodes { // names are in path order
		idle := int64(0)
		if i%base < f.free[i/base] {
			idle = 1
		}
		l.Free = append(l.Free, topology.Capacity{idle})
		l.Total = append(l.Total, topology.Capacity{1})
	}
	return l
}

// used counts the placement's nodes in each base block, and checks that segments are not split.
func (f slurmFleet) used(t *testing.T, p topology.Placement, segment int) []int {
	t.Helper()
	base := f.sizes[0]
	used := make([]int, len(f.free))
	for rank, n := range p.Nodes {
		used[n/base]++
		if segment > 0 && n/base != p.Nodes[rank-rank%segment]/base {
			t.Errorf("rank %d is not in the block of its segment: %v", rank, p.Nodes)
		}
	}
	return used
}

// job is a gang of so many whole nodes.
func job(nodes int) topology.Gang {
	return topology.Gang{
		Name:    "job",
		Members: make([]topology.Member, nodes),
		Shapes:  []topology.Shape{{Demand: topology.Capacity{1}}},
	}
}

// enclosing is the size of the aggregated block that a job of so many nodes must stay inside: the smallest listed one
// that could hold it if it were idle.
func (f slurmFleet) enclosing(nodes int) int {
	return f.sizes[slices.IndexFunc(f.sizes, func(size int) bool { return size >= nodes })]
}

// slurmCase is a job and the idle nodes that it takes of each base block; nil if it waits.
type slurmCase struct {
	name string
	slurmFleet
	nodes int
	slurm []int
	// ours is our answer if it is another one, because the reason.
	ours    []int
	because string
}

func (c slurmCase) want() []int {
	if c.because != "" {
		return c.ours
	}
	return c.slurm
}

// check holds our answer for the gang against the case.
func (c slurmCase) check(t *testing.T, g topology.Gang) {
	t.Helper()
	p, short, err := topology.Place(c.ledger(t), g)
	if err != nil {
		t.Fatal(err)
	}
	if short != nil {
		if c.want() != nil {
			t.Errorf("%v, want %v", short, c.want())
		}
		return
	}
	if got := c.used(t, p, g.Segment.Size); !slices.Equal(got, c.want()) {
		t.Errorf("idle %v, %d nodes: used %v, want %v", c.free, c.nodes, got, c.want())
	}
	if !p.Optimal() {
		t.Errorf("cost %d, at least %d", p.Cost, p.Bound)
	}
}

// The tree plugin: the lowest switch with enough nodes; inside it as few leaves as possible, best fit. A gang without
// rules asks for the same. Not expressed: --switches=N@time, a limit on leaves that time lifts. Costs have no limits,
// and this package has no time; a gang that must have one leaf requires the level.
func TestSlurm_Tree(t *testing.T) {
	two := []int{6, 12}
	for _, c := range []slurmCase{
		{
			name: "smallest leaf that holds the job", slurmFleet: slurmFleet{sizes: two, free: []int{5, 4, 3, 6}},
			nodes: 3, slurm: []int{0, 0, 3, 0},
		},
		{
			name: "lowest switch: one leaf and not two emptier ones", slurmFleet: slurmFleet{sizes: two, free: []int{6, 6, 4, 0}},
			nodes: 4, slurm: []int{0, 0, 4, 0},
		},
		{
			name: "lowest switch: no leaf holds it, the second switch fits best", slurmFleet: slurmFleet{sizes: two, free: []int{6, 4, 3, 5}},
			nodes: 7, slurm: []int{0, 0, 2, 5},
		},
		{
			name: "all switches", slurmFleet: slurmFleet{sizes: two, free: []int{6, 1, 5, 1}},
			nodes: 11, slurm: []int{6, 0, 5, 0},
		},
		{
			name: "largest leaf first, the rest where it fits best", slurmFleet: slurmFleet{sizes: []int{6, 24}, free: []int{3, 2, 6, 4}},
			nodes: 8, slurm: []int{0, 2, 6, 0},
		},
		{
			name: "not enough idle nodes", slurmFleet: slurmFleet{sizes: two, free: []int{3, 3, 2, 2}},
			nodes: 11, slurm: nil,
		},
		{
			name: "two leaves either way", slurmFleet: slurmFleet{sizes: []int{6, 18}, free: []int{6, 4, 4}},
			nodes: 8, slurm: []int{6, 2, 0}, ours: []int{0, 4, 4},
			because: "the cost is the same, and the large leaf stays whole for a job that needs it",
		},
		{
			name: "fewest leaves, or fewest switches", slurmFleet: slurmFleet{sizes: two, free: []int{4, 3, 6, 1, 4, 0}, weights: []int64{100, 300}},
			nodes: 14, slurm: []int{4, 0, 6, 0, 4, 0}, ours: []int{4, 3, 6, 1, 0, 0},
			because: "three leaves of three switches cost 300 and 900, four leaves of two switches 400 and 600",
		},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t, job(c.nodes)) })
	}
}

// The block plugin. A job stays inside one aggregated block of the smallest size that could hold it, whose boundaries
// are fixed, and waits otherwise: that is our required level. Inside it takes as few base blocks as it can, best fit.
// Not expressed: --exclusive=topo, which excludes other jobs from the block; the caller's ledger would do so. Nor
// torus3d: geometry is not covered.
func TestSlurm_Block(t *testing.T) {
	four := []int{4, 8, 16}
	for _, c := range []slurmCase{
		{
			name: "smallest sufficient base block", slurmFleet: slurmFleet{sizes: four, free: []int{4, 2, 3, 4}},
			nodes: 3, slurm: []int{0, 0, 3, 0},
		},
		{
			name: "strict: two half blocks are no base block", slurmFleet: slurmFleet{sizes: four, free: []int{2, 2, 2, 2}},
			nodes: 4, slurm: nil,
		},
		{
			name: "smallest sufficient aggregated block", slurmFleet: slurmFleet{sizes: four, free: []int{4, 4, 3, 3}},
			nodes: 5, slurm: []int{0, 0, 3, 2},
		},
		{
			name: "strict: idle base blocks side by side in two aggregated ones", slurmFleet: slurmFleet{sizes: four, free: []int{2, 4, 4, 2}},
			nodes: 8, slurm: nil,
		},
		{
			name: "five nodes need two base blocks, and may not use three", slurmFleet: slurmFleet{sizes: four, free: []int{3, 1, 3, 1}},
			nodes: 5, slurm: nil,
		},
		{
			name: "nine nodes are three base blocks, and so inside one of sixteen", slurmFleet: slurmFleet{sizes: four, free: []int{4, 4, 2, 3, 4, 4, 4, 4}},
			nodes: 9, slurm: []int{4, 4, 1, 0, 0, 0, 0, 0},
		},
		{
			name: "fewest base blocks before the best fit", slurmFleet: slurmFleet{sizes: four, free: []int{3, 2, 2, 2, 4, 4, 4, 4}},
			nodes: 9, slurm: []int{0, 0, 0, 0, 4, 4, 1, 0},
		},
		{
			name: "BlockSizes may leave a size out: 5 nodes may use all of sixteen", slurmFleet: slurmFleet{sizes: []int{4, 16}, free: []int{3, 1, 3, 1}},
			nodes: 5, slurm: []int{3, 0, 2, 0},
		},
		{
			name: "two base blocks either way", slurmFleet: slurmFleet{sizes: []int{4, 16}, free: []int{4, 3, 3, 0}},
			nodes: 6, slurm: []int{4, 2, 0, 0}, ours: []int{0, 3, 3, 0},
			because: "the cost is the same, and the whole base block stays whole",
		},
		{
			name:  "fewest base blocks, or fewest aggregated ones on the way",
			nodes: 17, slurmFleet: slurmFleet{
				sizes: []int{4, 8, 16, 32}, free: []int{4, 2, 4, 2, 4, 2, 4, 1}, weights: []int64{100, 200, 100, 100},
			},
			slurm: []int{4, 0, 4, 0, 4, 0, 4, 1}, ours: []int{4, 2, 4, 2, 0, 0, 4, 1},
			because: "each aggregated block of 8 left out saves 200, a sixth base block costs 100",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := job(c.nodes)
			g.Required = c.level(c.enclosing(c.nodes))
			c.check(t, g)
		})
	}
}

// We place a job that waits in Slurm because Slurm is strict, if nothing is required, over as few domains as possible.
func TestSlurm_BlockWithoutStrictness(t *testing.T) {
	for _, c := range []slurmCase{
		{
			name: "over two base blocks", slurmFleet: slurmFleet{sizes: []int{4, 8, 16}, free: []int{2, 2, 3, 0}},
			nodes: 4, ours: []int{2, 2, 0, 0}, because: "nothing is required",
		},
		{
			name: "over two aggregated blocks", slurmFleet: slurmFleet{sizes: []int{4, 8, 16}, free: []int{2, 4, 4, 2}},
			nodes: 8, ours: []int{0, 4, 4, 0}, because: "nothing is required",
		},
	} {
		t.Run(c.name, func(t *testing.T) { c.check(t, job(c.nodes)) })
	}
}

// --segment=S: each segment inside one base block, the segments anywhere in the aggregated block. Where Slurm does not
// name the base blocks, the fewest are meant: they cost least.
func TestSlurm_Segments(t *testing.T) {
	four := []int{4, 8, 16}
	for _, c := range []struct {
		slurmCase
		segment int
		// within is the block that holds all segments, 0 for the fleet; --consolidate-segments.
		within int
		// spread is --spread-segments.
		spread bool
	}{
		{slurmCase{
			name: "without segments the tighter aggregated block", slurmFleet: slurmFleet{sizes: four, free: []int{3, 4, 2, 4}},
			nodes: 6, slurm: []int{0, 0, 2, 4},
		}, 0, 8, false},
		{slurmCase{
			name: "with segments of 3 the one whose base blocks hold one each", slurmFleet: slurmFleet{sizes: four, free: []int{3, 4, 2, 4}},
			nodes: 6, slurm: []int{3, 3, 0, 0},
		}, 3, 8, false},
		{slurmCase{
			name: "several segments in a base block", slurmFleet: slurmFleet{sizes: four, free: []int{2, 2, 4, 0}},
			nodes: 4, slurm: []int{0, 0, 4, 0},
		}, 2, 4, false},
		{slurmCase{
			name: "idle nodes that no segment fits", slurmFleet: slurmFleet{sizes: four, free: []int{3, 3, 3, 3}},
			nodes: 10, slurm: nil,
		}, 2, 16, false},
		{slurmCase{
			name: "segments anywhere", slurmFleet: slurmFleet{sizes: four, free: []int{4, 3, 2, 4}},
			nodes: 8, slurm: []int{4, 0, 0, 4},
		}, 4, 0, false},
		{slurmCase{
			name: "consolidated: all segments in one aggregated block", slurmFleet: slurmFleet{sizes: four, free: []int{4, 3, 2, 4}},
			nodes: 8, slurm: nil,
		}, 4, 8, false},
		{slurmCase{
			name: "consolidated in a larger one", slurmFleet: slurmFleet{sizes: four, free: []int{4, 3, 2, 4, 3, 3, 3, 3}},
			nodes: 8, slurm: []int{4, 0, 0, 4, 0, 0, 0, 0},
		}, 4, 16, false},
		{slurmCase{
			name: "spread: at most one segment in a base block", slurmFleet: slurmFleet{sizes: four, free: []int{4, 4, 4, 1}},
			nodes: 6, slurm: []int{2, 2, 2, 0},
		}, 2, 16, true},
		{slurmCase{
			name: "spread: more segments than base blocks", slurmFleet: slurmFleet{sizes: four, free: []int{4, 4, 4, 1}},
			nodes: 8, slurm: nil,
		}, 2, 16, true},
		{slurmCase{
			name: "spread and consolidated", slurmFleet: slurmFleet{sizes: four, free: []int{4, 1, 3, 3}},
			nodes: 4, slurm: []int{0, 0, 2, 2},
		}, 2, 8, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := job(c.nodes)
			if c.segment > 0 {
				g.Segment = topology.Segment{Size: c.segment, Level: c.level(c.sizes[0]), Equal: true}
			}
			if c.within > 0 {
				g.Required = c.level(c.within)
			}
			if c.spread {
				g.Spread = topology.Spread{Max: 1, Level: c.level(c.sizes[0])}
			}
			c.check(t, g)
		})
	}
}

// A job that Slurm rejects at submission is an error here: waiting would not help.
func TestSlurm_Rejects(t *testing.T) {
	fleet := slurmFleet{sizes: []int{4, 8, 16}, free: []int{4, 4, 4, 4}}
	for _, c := range []struct {
		name           string
		nodes, segment int
		want           error
	}{
		{"nodes are no multiple of the segment", 10, 4, topology.ErrUnequal},
		{"fewer nodes than one segment", 3, 4, topology.ErrUnequal},
		{"segment larger than a base block", 10, 5, topology.ErrTooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := job(c.nodes)
			g.Segment = topology.Segment{Size: c.segment, Level: fleet.level(4), Equal: true}
			if _, _, err := topology.Place(fleet.ledger(t), g); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}
