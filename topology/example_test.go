package topology_test

import (
	"fmt"

	"github.com/lockstep-project/lockstep/topology"
)

// exampleFleet has a rack of so many nodes for each number, r1 first, each node with room for one member: its name is
// r1/1 and so on. A ring pays 100 for each rack that it uses, if these are at least two, and 100 for each node.
func exampleFleet(racks ...int) topology.Ledger {
	var nodes []topology.Node
	for r, n := range racks {
		for i := range n {
			rack := fmt.Sprint("r", r+1)
			nodes = append(
				nodes,
				topology.Node{Name: fmt.Sprint(rack, "/", i+1), Labels: map[string]string{"rack": rack}},
			)
		}
	}
	tree, err := topology.NewTree([]topology.Level{{Name: "rack", Key: "rack", Weight: 100}}, nodes)
	if err != nil {
		panic(err) // an example has no test to fail
	}
	l := topology.Ledger{Tree: tree, Free: make([]topology.Capacity, len(nodes))}
	for i := range l.Free {
		l.Free[i] = topology.Capacity{1}
	}
	return l
}

// exampleGang has so many members that take one of the first resource each.
func exampleGang(members int) topology.Gang {
	return topology.Gang{
		Name:    "train",
		Members: make([]topology.Member, members),
		Shapes:  []topology.Shape{{Demand: topology.Capacity{1}}},
	}
}

func names(l topology.Ledger, nodes []int) []string {
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = l.Tree.Node(n)
	}
	return all
}

// Five members on racks of 4, 3 and 2 nodes: two racks in any case, which are entered once each. 4+1, 4+1 and 3+2 cost
// the same, and 3+2 leaves the largest rack whole.
func ExamplePlace() {
	l := exampleFleet(4, 3, 2)
	p, _, err := topology.Place(l, exampleGang(5))
	fmt.Println(names(l, p.Nodes), err)
	fmt.Println("racks", p.Levels[0].Domains, "cost", p.Cost, "optimal", p.Optimal())
	// Output:
	// [r2/1 r2/2 r2/3 r3/1 r3/2] <nil>
	// racks 2 cost 700 optimal true
}

// Racks of 5 and 7 nodes hold 12 members, but only one segment of 4 each: 5/4 and 7/4, rounded down.
func ExamplePlace_segments() {
	l := exampleFleet(5, 7)
	g := exampleGang(12)
	g.Segment = topology.Segment{Size: 4, Level: "rack"}
	_, short, _ := topology.Place(l, g)
	fmt.Println("12 fit:", short == nil)
	g.Members = g.Members[:8]
	p, _, _ := topology.Place(l, g)
	fmt.Println(names(l, p.Nodes))
	// Output:
	// 12 fit: false
	// [r1/1 r1/2 r1/3 r1/4 r2/1 r2/2 r2/3 r2/4]
}

// An elastic gang of 4 to 10 on 7 nodes: 10 do not fit, and of 4 to 9 it is 6, 8 and 7 that are tried.
func ExamplePlace_elastic() {
	g := exampleGang(10)
	g.Min = 4
	p, _, err := topology.Place(exampleFleet(4, 3), g)
	fmt.Println(len(p.Nodes), "of 10 are placed", err)
	// Output: 7 of 10 are placed <nil>
}

// A rack of four nodes is full. Two members need two nodes: the gang that holds two costs 30, the two that hold one
// each 10 and 15.
func ExampleEvict() {
	l := exampleFleet(4)
	l.Free = make([]topology.Capacity, 4)
	one := topology.Capacity{1}
	running := []topology.Running{
		{Name: "a", Cost: 30, Holds: []topology.Held{{Node: 0, Demand: one}, {Node: 1, Demand: one}}},
		{Name: "b", Cost: 10, Holds: []topology.Held{{Node: 2, Demand: one}}},
		{Name: "c", Cost: 15, Holds: []topology.Held{{Node: 3, Demand: one}}},
	}
	e, _, err := topology.Evict(l, exampleGang(2), running)
	for _, v := range e.Victims {
		fmt.Println("evict", running[v].Name)
	}
	fmt.Println("cost", e.Cost, "optimal", e.Optimal(), names(l, e.Placement.Nodes), err)
	// Output:
	// evict b
	// evict c
	// cost 25 optimal true [r1/3 r1/4] <nil>
}

// Two members wait for a rack whose nodes become free at 10 and at 20: they start at 20. Meanwhile a gang of one member
// may have the node that is free at 10 if it ends by 20.
func ExampleReserve() {
	l := exampleFleet(2)
	l.Free = make([]topology.Capacity, 2)
	running := []topology.Running{
		{Name: "a", End: 10, Holds: []topology.Held{{Node: 0, Demand: topology.Capacity{1}}}},
		{Name: "b", End: 20, Holds: []topology.Held{{Node: 1, Demand: topology.Capacity{1}}}},
	}
	head := exampleGang(2)
	r, _, err := topology.Reserve(l, head, running)
	fmt.Println("starts at", r.At, "on", names(l, r.Placement.Nodes), err)

	l.Free[0], running = topology.Capacity{1}, running[1:] // at 10
	for _, end := range []int64{20, 30} {
		_, short, err := r.Admit(l, running, head, exampleGang(1), end)
		fmt.Println("passes until", end, short == nil, err)
	}
	// Output:
	// starts at 20 on [r1/1 r1/2] <nil>
	// passes until 20 true <nil>
	// passes until 30 false <nil>
}
