package measure

import (
	"github.com/lockstep-project/lockstep/simulator/scenario"
	"github.com/lockstep-project/lockstep/topology"
)

// start is a start as it was told.
type start struct {
	job *scenario.Job
	// holds are the nodes by rank as the tally keeps them; nodes and ranks are those of the members that have one.
	holds        []int32
	nodes, ranks []int
	// spread is how many nodes it uses, domains how many domains of each level, q how good it is, 0 if that is not known.
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

// demand is what the i-th of the members that have a node takes.
func (s *start) demand(i int) topology.Capacity {
	g := &s.job.Gang
	return g.Shapes[g.Members[s.ranks[i]].Shape].Demand
}
