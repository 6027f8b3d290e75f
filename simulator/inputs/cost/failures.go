package cost

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// Rates of failures, in failures of one component per million hours, and the times of repairs, in seconds.
const (
	// nodeRate is 6.5 failures per 1,000 node-days (Meta RSC-1, Kokolis et al., HPCA '25, arXiv:2410.21680). For
	// comparison: 419 unexpected interruptions in 54 days on 2,048 nodes of 8 GPUs (Llama 3, arXiv:2407.21783, section
	// 3.3.4) are 3.8.
	nodeRate = 271
	// rackRate is 20 rack failures a year in a cluster of 1,800 machines, 40 to a rack (Dean, "Designs, lessons and
	// advice from building large distributed systems", LADIS '09): 0.44 per rack and year.
	rackRate = 51
	// domainRate is that of NVLink domains of several nodes, for which nothing is published: a choice, as often as
	// racks.
	domainRate = 51
	// Nodes are away for 1 to 24 hours, a choice; racks for 1 to 6 hours (Dean, the same); NVLink domains as long as
	// racks, a choice.
	shortest, nodeLongest, rackLongest = 3_600, 24 * 3_600, 6 * 3_600
)

// Outage is a failure of nodes and their return.
type Outage struct {
	// At is the time at which they fail, Until that at which they return, in seconds since the beginning.
	At, Until int64
	// Nodes are numbers in the tree, in ascending order.
	Nodes []int
}

// Failures draws the outages of a fleet from the beginning until an instant in seconds. rate multiplies the published
// rates, in thousandths. Nothing but the seed, the fleet and the rate decides, in particular no scheduler. A node that
// is away does not fail again before it has returned: of a larger outage it is left out.
func Failures(tree *topology.Tree, seed uint64, until, rate int64) []Outage {
	l := newLadder(tree)
	var out []Outage
	for node := range tree.Len() {
		out = append(
			out,
			draw(
				rand.New(rand.NewPCG(seed, streamNodes+uint64(node))),
				[]int{node},
				until,
				nodeRate*rate,
				nodeLongest,
			)...)
	}
	larger := func(stream uint64, rung int, perMillion int64) {
		members := make([][]int, len(l.children[rung]))
		for node, d := range l.of[rung] {
			members[d] = append(members[d], node)
		}
		for d, nodes := range members {
			if len(nodes) > 1 && len(nodes) < tree.Len() {
				chance := rand.New(rand.NewPCG(seed, stream+uint64(d)))
				out = append(out, draw(chance, nodes, until, perMillion*rate, rackLongest)...)
			}
		}
	}
	if l.shared {
		larger(streamDomains, 0, domainRate)
	}
	if len(l.of) > 2 { // the last rung is the fleet
		larger(streamRacks, 1, rackRate)
	}
	return apart(out, tree.Len())
}

// The streams of the seed: one for each thing that fails.
const (
	streamNodes   = 1 << 40
	streamDomains = 2 << 40
	streamRacks   = 3 << 40
)

// draw draws the outages of one thing: in each hour a failure with the probability of the rate, at some second of it.
// perBillion is in failures per 10^9 hours. Integers decide, so that all machines draw the same.
func draw(chance *rand.Rand, nodes []int, until, perBillion, longest int64) []Outage {
	const hour, billion = 3_600, 1_000_000_000
	var out []Outage
	for from := int64(0); from < until; from += hour {
		if chance.Int64N(billion) >= perBillion {
			continue
		}
		at := from + chance.Int64N(hour)
		o := Outage{At: at, Until: at + shortest + chance.Int64N(longest-shortest+1), Nodes: nodes}
		if at < until && (len(out) == 0 || out[len(out)-1].Until < at) {
			out = append(out, o)
		}
	}
	return out
}

// apart sorts outages, and leaves out of each the nodes that are away already.
func apart(outages []Outage, nodes int) []Outage {
	slices.SortStableFunc(outages, func(a, b Outage) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.Nodes[0], b.Nodes[0]))
	})
	back := make([]int64, nodes)
	for i := range back {
		back[i] = -1
	}
	var out []Outage
	for _, o := range outages {
		var left []int
		for _, node := range o.Nodes {
			if back[node] < o.At {
				left = append(left, node)
				back[node] = o.Until
			}
		}
		if o.Nodes = left; len(left) > 0 {
			out = append(out, o)
		}
	}
	return out
}
