package topology_test

import (
	"fmt"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/topologytest"
)

// Of 20 members that take a node each and 20 that take half of one, three of each run: on c0, and on two nodes of c1.
// Neither clique has room for the 17 others that take a node. A third clique has; but c0 and c1 have together, and a
// ring through two cliques crosses fewer boundaries.
func TestPlace_LargeKindsReturnToTheirDomains(t *testing.T) {
	s := topologytest.Scene{
		Levels: []topology.Level{{Name: "clique", Key: "test/clique", Weight: 100}},
		Gang: topology.Gang{Name: "gang", Shapes: []topology.Shape{
			{Demand: topology.Capacity{4}}, {Demand: topology.Capacity{2}},
		}},
	}
	const cliques, nodes, each = 4, 18, 20
	for node := range cliques * nodes {
		s.Nodes = append(s.Nodes, topology.Node{
			Name: fmt.Sprint("n", node), Labels: map[string]string{"test/clique": fmt.Sprint("c", node/nodes)},
		})
		s.Free = append(s.Free, topology.Capacity{4})
	}
	for member := range 2 * each {
		s.Gang.Members = append(s.Gang.Members, topology.Member{Name: fmt.Sprint("m", member), Shape: member / each})
	}
	for member, node := range map[int]int{0: 0, 1: 1, 2: 2, each: nodes, each + 1: nodes, each + 2: nodes + 1} {
		m := &s.Gang.Members[member]
		m.Placed, m.Node = true, node
		s.Free[node] = topology.Capacity{s.Free[node][0] - s.Gang.Shapes[m.Shape].Demand[0]}
	}
	p, short, err := s.Place()
	if err != nil || short != nil {
		t.Fatalf("no place: %v, %v", short, err)
	}
	if err := s.Check(p.Nodes); err != nil {
		t.Error(err)
	}
	if used := p.Levels[0].Domains; used != 2 {
		t.Errorf("the gang is in %d cliques, want the 2 that it was in", used)
	}
}
