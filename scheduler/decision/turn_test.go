package decision_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/topology"
)

// Three nodes of eight, the first and the last of which are taken until 100. A gang of two waits for two nodes; another one
// that runs longer takes the free one, which had been kept, and delays nobody: the first has its place on the other two then.
// That is the place that is kept from now on, or the next would get it.
func TestThePlaceThatIsKeptMovesAsideForWhoPasses(t *testing.T) {
	var nodes []topology.Node
	for i := range 3 {
		nodes = append(nodes, topology.Node{Name: fmt.Sprint("n", i)})
	}
	tree, err := topology.NewTree(nil, nodes)
	if err != nil {
		t.Fatal(err)
	}
	ledger := topology.Ledger{Tree: tree, Free: []topology.Capacity{{0}, {8}, {0}}}
	var running []topology.Running
	for _, node := range []int{0, 2} {
		running = append(running, topology.Running{
			Name: fmt.Sprint(
				"runs-",
				node,
			),
			Holds: []topology.Held{{Node: node, Demand: topology.Capacity{8}}},
			End:   100,
		})
	}
	ask := func(name string, members int, end int64) decision.Ask {
		return decision.Ask{Needed: members, End: end, Gang: topology.Gang{
			Name: name, Members: make([]topology.Member, members),
			Shapes: []topology.Shape{{Demand: topology.Capacity{8}}},
		}}
	}
	head := ask("first", 2, topology.EndUnknown)
	kept := decision.Keep(ledger, running, head)
	if kept == nil || !slices.Contains(kept.Placement.Nodes, 1) {
		t.Fatalf("the place is %v: the scene is wrong", kept)
	}
	turn := decision.Turn{
		Head: head, Running: func() []topology.Running { return running },
		Keeps: func(node int) bool { return slices.Contains(kept.Placement.Nodes, node) },
	}
	answer, moved := turn.Behind(ledger, ask("long", 1, 200))
	if answer.Refusal != nil {
		t.Fatal(answer.Refusal)
	}
	if moved == nil || !slices.Equal(moved.Placement.Nodes, []int{0, 2}) || moved.At != 100 {
		t.Errorf("kept is %+v, want the nodes 0 and 2 from 100", moved)
	}
}
