package baseline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/policy/baseline"
	"github.com/lockstep-project/lockstep/topology"
)

// blocks returns a fleet of base blocks with so many nodes each, the first ones idle.
func blocks(t *testing.T, nodes int, idle []int) topology.Ledger {
	t.Helper()
	var b strings.Builder
	for block, free := range idle {
		for n := range nodes {
			left := 8
			if n >= free {
				left = 0
			}
			fmt.Fprintf(&b, "b%d/b%d-%d=%d/8 ", block, block, n, left)
		}
	}
	return fleet(t, "block!", b.String())
}

func TestSlurmBlock_TakesBaseBlocks(t *testing.T) {
	for _, c := range []struct {
		name string
		idle []int
		// nodes is the number that the job takes, segment its --segment.
		nodes, segment int
		// used are the nodes of each base block; nil if the job waits.
		used []int
	}{
		{"smallest sufficient base block", []int{4, 2, 3, 4}, 3, 0, []int{0, 0, 3, 0}},
		{"of equal base blocks the last", []int{4, 3, 3, 4}, 3, 0, []int{0, 0, 3, 0}},
		{"strict: two half blocks are no base block", []int{2, 2, 2, 2}, 4, 0, nil},
		{"pair of base blocks with least idle nodes", []int{4, 4, 3, 3}, 5, 0, []int{0, 0, 2, 3}},
		{"strict: idle base blocks side by side in two pairs", []int{2, 4, 4, 2}, 8, 0, nil},
		{"five nodes are two base blocks, and may not use three", []int{3, 1, 3, 1}, 5, 0, nil},
		{"three base blocks are inside four", []int{4, 4, 2, 3, 4, 4, 4, 4}, 9, 0, []int{4, 4, 1, 0, 0, 0, 0, 0}},
		{"fewest base blocks: largest first, the rest where it fits best", []int{4, 3, 1, 2}, 9, 0, []int{4, 3, 0, 2}},
		{"the rest goes to the smallest that holds it", []int{1, 4, 3, 2}, 9, 0, []int{0, 4, 3, 2}},
		{"of equal base blocks that hold the rest the last", []int{4, 4, 2, 2}, 9, 0, []int{4, 4, 0, 1}},
		{"more than all pairs: the whole cluster", []int{4, 4, 4}, 11, 0, []int{3, 4, 4}},
		{"the last pair has one block only", []int{2, 2, 4}, 5, 0, nil},
		{"segments need not be in one larger block", []int{2, 4, 4, 2}, 8, 4, []int{0, 4, 4, 0}},
		{"each segment in one base block", []int{3, 3, 3, 3}, 8, 4, nil},
		{"segments fill a base block before they begin another", []int{4, 4, 4, 4}, 8, 2, []int{0, 0, 4, 4}},
		{"segments that do not divide the job are refused", []int{4, 4, 4, 4}, 7, 2, nil},
		{"a segment that is larger than the job is ignored", []int{4, 4, 4, 4}, 2, 3, []int{0, 0, 0, 2}},
		{"more than there is", []int{4, 4}, 9, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := blocks(t, 4, c.idle)
			g := pods(c.nodes, 8)
			g.Segment = topology.Segment{Size: c.segment, Level: "block"}
			at, ok := named(t, baseline.SlurmBlock).Place(l, g)
			if !ok {
				if c.used != nil {
					t.Errorf("no place, want %v", c.used)
				}
				return
			}
			used := make([]int, len(c.idle))
			for _, node := range at {
				used[node/4]++
			}
			if !slices.Equal(used, c.used) {
				t.Errorf("used %v, want %v", used, c.used)
			}
			if !slices.IsSorted(at) {
				t.Errorf("ranks %v are not in the order of nodes", at)
			}
		})
	}
}

// Several tasks fit on a node: they fill it before they begin another, and a base block counts the tasks for which it
// has room.
func TestSlurmBlock_TasksShareNodes(t *testing.T) {
	l := fleet(t, "block!", "a/a1=8 a/a2=3/8 b/b1=1/8 b/b2=4/8")
	want(t, baseline.SlurmBlock, l, pods(5, 1), "b1 b2*4")
	want(t, baseline.SlurmBlock, l, pods(10, 1), "a1*8 a2*2")
	want(t, baseline.SlurmBlock, l, pods(12, 1), "") // two nodes at most, and so one base block
}

// Blocks are NVLink domains where there are some, and the innermost domains where there are none.
func TestSlurmBlock_TwoLadders(t *testing.T) {
	nodes := "r1/c1/n1=8 r1/c1/n2=8 r1/c2/n3=8 r1/c2/n4=8 r2/c3/n5=8 r2/c3/n6=8"
	want(t, baseline.SlurmBlock, fleet(t, "row rack", nodes), pods(3, 8), "n1 n3 n4")
	want(t, baseline.SlurmBlock, fleet(t, "row! rack", nodes), pods(3, 8), "n1 n2 n3")
}

// Domains of one node each are no blocks: those around them are.
func TestSlurmBlock_HasSeveralNodes(t *testing.T) {
	l := fleet(t, "cube! pair! host!", "c/p1/h1/n1=4 c/p1/h2/n2=4 c/p2/h3/n3=4 c/p2/h4/n4=4")
	l.Free[0][3] = 0
	want(t, baseline.SlurmBlock, l, pods(2, 4), "n3 n4")
	l.Free[3][3] = 0
	want(t, baseline.SlurmBlock, l, pods(2, 4), "")
}

// Nodes outside all blocks have a topology of their own, where runs of consecutive nodes count.
func TestSlurmBlock_NodesOutsideBlocks(t *testing.T) {
	l := fleet(t, "block!", "a/n1=8 a/n2=0/8 -/n3=8 -/n4=2/8")
	want(t, baseline.SlurmBlock, l, pods(1, 8), "n1")
	want(t, baseline.SlurmBlock, l, pods(9, 1), "n3*8 n4")
	flat := fleet(t, "", "n1=8 n2=8 n3=0/8 n4=8 n5=8 n6=8 n7=0/8 n8=8")
	want(t, baseline.SlurmBlock, flat, pods(1, 8), "n8")
	want(t, baseline.SlurmBlock, flat, pods(2, 8), "n1 n2")
	want(t, baseline.SlurmBlock, flat, pods(4, 8), "n4 n5 n6 n8")
	want(t, baseline.SlurmBlock, flat, pods(7, 8), "")
}

// A tree prefers the lowest switch with room, the tightest of them, and waits for none.
func TestSlurmTree(t *testing.T) {
	l := fleet(t, "block rack", "a/a1/n1=8 a/a1/n2=0/8 a/a2/n3=8 a/a2/n4=8 b/b1/n5=8 b/b1/n6=8 b/b2/n7=8 b/b2/n8=8")
	for _, c := range []struct {
		name, required string
		count          int
		want           string
	}{
		{"one node: the leaf switch with least room", "", 1, "n1"},
		{"two nodes: a leaf switch, the first of equal ones", "", 2, "n3 n4"},
		{"three nodes: the tightest block, its leaf switches best fit", "", 3, "n1 n3 n4"},
		{"four nodes: the other block", "", 4, "n5 n6 n7 n8"},
		{"five nodes: the whole cluster, the largest leaf switches first", "", 5, "n1 n3 n4 n5 n6"},
		{"seven nodes: all that is free", "", 7, "n1 n3 n4 n5 n6 n7 n8"},
		{"eight nodes", "", 8, ""},
		{"--switches=1 waits for one leaf switch", "rack", 3, ""},
		{"--switches=1 finds one", "rack", 2, "n3 n4"},
		{"there is no word for a block", "block", 5, "n1 n3 n4 n5 n6"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := pods(c.count, 8)
			g.Required = c.required
			want(t, baseline.SlurmTree, l, g, c.want)
		})
	}
}

// NVLink domains are switches only where no network is described.
func TestSlurmTree_IgnoresNVLinkBesideANetwork(t *testing.T) {
	nodes := "r1/c1/n1=8 r1/c1/n2=8 r1/c2/n3=8 r2/c3/n4=8 r2/c3/n5=8"
	want(t, baseline.SlurmTree, fleet(t, "row clique!", nodes), pods(3, 8), "n1 n2 n3")
	want(t, baseline.SlurmTree, fleet(t, "clique!", "c1/n1=8 c2/n2=8 c2/n3=8"), pods(2, 8), "n2 n3")
}

func TestSlurmFlat(t *testing.T) {
	l := fleet(t, "rack", "a/n1=8 a/n2=8 a/n3=0/8 b/n4=8 b/n5=8 b/n6=8 b/n7=0/8 b/n8=8")
	want(t, baseline.SlurmFlat, l, pods(1, 8), "n8")
	want(t, baseline.SlurmFlat, l, pods(2, 8), "n1 n2")
	want(t, baseline.SlurmFlat, l, pods(4, 8), "n4 n5 n6 n8")
}
