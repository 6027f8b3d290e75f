package measure

import (
	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// start is a reported start.
type start struct {
	job *scenario.Job
	// holds are the nodes by rank as the tally stores them; nodes and ranks are those of the members that have one.
	holds        []int32
	nodes, ranks []int
	// spread is the number of nodes that it uses, domains that of domains of each level, q its quality, 0 if that is
	// not known.
	spread  int
	domains []int32
	q       float64
}

// newStart reads the nodes of a start. A rank without a node, or with one that is not there, did not start.
func newStart(job *scenario.Job, nodes []int, fleet int) *start {
	s := &start{
		job:   job,
		holds: make([]int32, 0, len(nodes)),
		nodes: make([]int, 0, len(nodes)),
		ranks: make([]int, 0, len(nodes)),
	}
	for rank, node := range nodes[:min(len(nodes), len(job.Gang.Members))] {
		if node < 0 || node >= fleet {
			s.holds = append(s.holds, nowhere)
			continue
		}
		s.holds = append(s.holds, int32(node))
		s.nodes, s.ranks = append(s.nodes, node), append(s.ranks, rank)
	}
	return s
}

// demand returns the demand of the i-th of the members that have a node.
func (s *start) demand(i int) topology.Capacity {
	g := &s.job.Gang
	return g.Shapes[g.Members[s.ranks[i]].Shape].Demand
}
