package cost

import (
	"fmt"

	"github.com/lockstep-project/lockstep/topology"
)

// thousand is the unit of factors and slowdowns.
const thousand = 1000

// mostShare bounds the part of an iteration that is communication after scaling, in thousandths.
const mostShare = 900

// Options are the parts of a model. Factors are in thousandths: 0 is off, 1000 is as published.
type Options struct {
	// Tree and Total are the fleet's, Total by node. Accelerator is the index of accelerators in a Capacity.
	Tree        *topology.Tree
	Total       []topology.Capacity
	Accelerator int
	Network     Network
	// Slowdown multiplies the shares of communication, Startup the seconds of assembly and reload.
	Slowdown, Startup int64
}

// Model computes the costs of placements and starts. A nil model costs nothing. It caches answers, so it is not safe
// for concurrent use.
type Model struct {
	network     Network
	ladder      *ladder
	total       []topology.Capacity
	accelerator int
	slowdown    int64
	startup     int64
	// capacities are by shape, fastest the times in nanoseconds of best layouts by shape and members.
	capacities map[string][][]int64
	fastest    map[string]int64
}

// New returns a model.
func New(o Options) *Model {
	return &Model{
		network: o.Network, ladder: newLadder(o.Tree), total: o.Total, accelerator: o.Accelerator, slowdown: o.Slowdown,
		startup: o.Startup, capacities: make(map[string][][]int64), fastest: make(map[string]int64),
	}
}

// Network returns the network that the model reckons with.
func (m *Model) Network() Network { return m.network }

// Share returns the part of an iteration that is communication for jobs of the class, in thousandths of it.
func (m *Model) Share(c Class) int64 {
	if m == nil {
		return 0
	}
	return min(scale(c.Share, m.slowdown), mostShare)
}

// Slowdown returns the run time as a multiple of the nominal time, in thousandths, 1000 or more. nodes are by rank,
// below 0 or absent for members that do not run; share is the job's (Share).
func (m *Model) Slowdown(gang *topology.Gang, nodes []int, share int64) int64 {
	if m == nil || share == 0 {
		return thousand
	}
	each := func(rank int) int64 { return m.accelerators(gang, rank) }
	nodes = nodes[:min(len(nodes), len(gang.Members))]
	fastest := m.best(gang, nodes)
	if fastest == 0 {
		return thousand
	}
	return slowed(share, m.network.reduce(m.ladder.groups(nodes, each)), fastest)
}

// slowed returns the slowdown of a placement whose all-reduce takes so long. Where a fleet is not homogeneous, a
// placement may be faster than the assumed best.
func slowed(share, takes, fastest int64) int64 {
	if takes <= fastest {
		return thousand
	}
	return thousand - share + (share*takes+fastest-1)/fastest
}

// Greatest returns a bound of the slowdown of any placement of the first ranks, at least so many of them, in
// thousandths.
func (m *Model) Greatest(gang *topology.Gang, least int, share int64) int64 {
	greatest := int64(thousand)
	if m == nil || share == 0 {
		return greatest
	}
	for members := max(least, 1); members <= len(gang.Members); members++ {
		greatest = max(greatest, m.worst(gang, members, share))
	}
	return greatest
}

// worst returns a bound of the slowdown of any placement of so many first ranks.
func (m *Model) worst(gang *topology.Gang, members int, share int64) int64 {
	fastest := m.best(gang, make([]int, members))
	if fastest == 0 {
		return thousand
	}
	count, all, fewest := int64(0), int64(0), int64(0)
	for rank := range members {
		if a := m.accelerators(gang, rank); a > 0 {
			count, all = count+1, all+a
			if fewest == 0 || a < fewest {
				fewest = a
			}
		}
	}
	worst := m.network.Inside.exchange(all, 1)
	for tier := range len(m.ladder.of) - 1 {
		worst += m.network.link(tier).exchange(count, fewest)
	}
	return slowed(share, worst, fastest)
}

// accelerators are those of a member.
func (m *Model) accelerators(gang *topology.Gang, rank int) int64 {
	if demand := gang.Shapes[gang.Members[rank].Shape].Demand; m.accelerator < len(demand) {
		return demand[m.accelerator]
	}
	return 0
}

// best returns the time of the best layout of the members that run, 0 if there is none, or nothing to be summed up. Of
// members of several shapes, all count as the largest.
func (m *Model) best(gang *topology.Gang, nodes []int) int64 {
	sum, largest, shape := int64(0), int64(0), 0
	for rank, node := range nodes {
		if node < 0 {
			continue
		}
		a := m.accelerators(gang, rank)
		if sum += a; a > largest {
			largest, shape = a, gang.Members[rank].Shape
		}
	}
	if sum < 2 {
		return 0
	}
	demand := gang.Shapes[shape].Demand
	name := fmt.Sprint(demand)
	members := (sum + largest - 1) / largest
	key := fmt.Sprint(members, name)
	if takes, known := m.fastest[key]; known {
		return takes
	}
	if m.capacities[name] == nil {
		m.capacities[name] = m.ladder.capacities(m.total, demand)
	}
	takes := m.network.reduce(m.ladder.best(m.capacities[name], members, largest))
	m.fastest[key] = takes
	return takes
}
