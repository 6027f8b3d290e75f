package cost

import "math/bits"

// bytes is the amount that an all-reduce sums up, as 10^9 bytes: A choice; it decides only the weight of latencies
// beside bandwidths.
const bytes = 1_000_000_000

// group is a number of accelerators of a gang in one domain. above are the numbers of the domains that the domain is
// in, the next larger one first.
type group struct {
	accelerators int64
	above        []int32
}

// reduce returns the time of a hierarchical all-reduce in nanoseconds: of reduce-scatters from the inside out and
// all-gathers back (BlueConnect, Cho et al., MLSys 2019). The groups are those of the NVLink domains or nodes that the
// gang uses.
//
// At each boundary, m domains inside one larger domain each have to exchange 2(m−1)/m of the bytes with the others,
// over as many links as they have accelerators: the domain with the fewest decides (the lower bound of a ring,
// Patarasuk and Yuan, 2009). The latency is that of a tree and its way back, 2⌈log₂ m⌉ steps (Sanders, Speck and Träff,
// 2009), as NCCL has it. Where there are several larger domains, the slowest decides.
func (n *Network) reduce(groups []group) int64 {
	var inside int64
	for _, g := range groups {
		inside = max(inside, n.Inside.exchange(g.accelerators, 1))
	}
	total := inside
	for tier := 0; len(groups) > 1; tier++ {
		var slowest int64
		groups, slowest = gather(groups, n.link(tier))
		total += slowest
	}
	return total
}

// link is the link of a boundary of the network, counted from the inside.
func (n *Network) link(tier int) Link {
	switch tier {
	case 0:
		return n.Leaf
	case 1:
		return n.Spine
	}
	return n.Core
}

// exchange is the time in nanoseconds in which m domains with so many links each sum up.
func (l Link) exchange(m, links int64) int64 {
	if m < 2 {
		return 0
	}
	const perMBps = bytes * 1000 // 10^9 ns per second by 10^6 bytes per megabyte
	steps := int64(2 * bits.Len64(uint64(m-1)))
	return 2*(m-1)*perMBps/(m*links*l.MBps) + steps*l.Latency
}

// gather joins groups to those of the next larger domains, and returns the time of the slowest exchange.
func gather(groups []group, over Link) ([]group, int64) {
	type sum struct {
		children, fewest, all int64
		above                 []int32
	}
	var sums []sum
	at := make(map[int32]int, len(groups))
	for _, g := range groups {
		key, above := int32(-1), []int32(nil) // without larger domains: the fleet
		if len(g.above) > 0 {
			key, above = g.above[0], g.above[1:]
		}
		i, known := at[key]
		if !known {
			i = len(sums)
			at[key] = i
			sums = append(sums, sum{fewest: g.accelerators, above: above})
		}
		s := &sums[i]
		s.children++
		s.all += g.accelerators
		s.fewest = min(s.fewest, g.accelerators)
	}
	var slowest int64
	out := make([]group, len(sums))
	for i, s := range sums {
		slowest = max(slowest, over.exchange(s.children, s.fewest))
		out[i] = group{s.all, s.above}
	}
	return out, slowest
}
