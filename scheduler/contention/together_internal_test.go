package contention

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

// The level that keeps a gang together is the innermost with a domain that holds twice as much when it is empty: of
// nodes that the gang may use, by the resource that runs out first.
func TestMachine_Roomy(t *testing.T) {
	var nodes []topology.Node
	var total []topology.Capacity
	for i := range 16 { // two blocks of two racks of four nodes
		nodes = append(nodes, topology.Node{Name: fmt.Sprintf("n%02d", i), Labels: map[string]string{
			"block": strconv.Itoa(i / 8), "rack": strconv.Itoa(i / 4),
		}})
		total = append(total, topology.Capacity{8, 64})
	}
	tree, err := topology.NewTree([]topology.Level{{Name: "block", Key: "block"}, {Name: "rack", Key: "rack"}}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	outsideFirst := make([]string, len(nodes)) // three nodes of each rack but the first are barred
	for i := range nodes {
		if i >= 4 && i%4 > 0 {
			outsideFirst[i] = "another pool"
		}
	}
	for _, test := range []struct {
		name    string
		members int
		demand  topology.Capacity
		barred  []string
		total   []topology.Capacity
		part    int64
		want    string
	}{
		{"half a rack", 2, topology.Capacity{8, 1}, nil, total, 50, "rack"},
		{"more than half a rack", 3, topology.Capacity{8, 1}, nil, total, 50, "block"},
		{"half a block", 4, topology.Capacity{8, 1}, nil, total, 50, "block"},
		{"more than half a block", 5, topology.Capacity{8, 1}, nil, total, 50, ""},
		{"a whole rack", 4, topology.Capacity{8, 1}, nil, total, 100, "rack"},
		{"several members on a node", 8, topology.Capacity{2, 1}, nil, total, 50, "rack"},
		{"processors run out first", 4, topology.Capacity{2, 32}, nil, total, 50, "rack"},
		{"processors for fewer", 5, topology.Capacity{2, 32}, nil, total, 50, "block"},
		{"one rack is open", 2, topology.Capacity{8, 1}, outsideFirst, total, 50, "rack"},
		{"the block has five nodes open", 3, topology.Capacity{8, 1}, outsideFirst, total, 50, ""},
		{"a resource that no node has", 2, topology.Capacity{8, 1, 1}, nil, total, 50, ""},
		{"totals are not known", 2, topology.Capacity{8, 1}, nil, nil, 50, ""},
	} {
		gang := topology.Gang{
			Members: make([]topology.Member, test.members),
			Shapes:  []topology.Shape{{Demand: test.demand, Barred: test.barred}},
		}
		ledger := topology.Ledger{Tree: tree, Free: total, Total: test.total}
		got := New(DefaultPolicy()).roomy(ledger, Ask{Gang: gang, Needed: test.members}, test.part)
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
