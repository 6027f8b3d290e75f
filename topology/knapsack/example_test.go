package knapsack_test

import (
	"fmt"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// Three racks that hold up to 4, 3 and 2 members for 100 each are to hold 5. Together the last two offer up to 3 for
// 100 and up to 5 for 200; 2 for 100 is dominated. All three offer up to 4 for 100. The first part holds nothing, since
// the others hold 5 for as little.
func ExampleMixer_Rests() {
	m := knapsack.NewMixer(knapsack.NewLayers(nil), false)
	var parts []knapsack.ParetoFront
	for _, n := range []int32{4, 3, 2} {
		parts = append(parts, knapsack.ParetoFront{{{}, {N: n, Cost: 100}}})
	}
	whole := knapsack.Share{Units: 5}
	rests := m.Rests(parts, whole.Units)
	fmt.Println("last two", rests[1][0], "all", rests[0][0])
	for i, part := range parts {
		share := m.Choose(part, rests[i], rests[i+1], whole)
		fmt.Println("part", i+1, "holds", share.Units)
		whole.Units -= share.Units
	}
	// Output:
	// last two [{0 0} {3 100} {5 200}] all [{0 0} {4 100} {5 200}]
	// part 1 holds 0
	// part 2 holds 3
	// part 3 holds 2
}

// The same whole, reduced: a fifth unit costs 100/3 at the margin, and points that cannot belong to a solution of 200
// are dropped.
func ExampleMixer_Reduce() {
	m := knapsack.NewMixer(knapsack.NewLayers(nil), false)
	var parts []knapsack.ParetoFront
	for _, n := range []int32{4, 3, 2} {
		parts = append(parts, knapsack.ParetoFront{{{}, {N: n, Cost: 100}}})
	}
	rests, cost, ok := m.Reduce(parts, knapsack.Share{Units: 5})
	fmt.Println("cost", cost, ok, "all", rests[0][0], "last two", rests[1][0], "last", rests[2][0])
	// Output:
	// cost 200 true all [{5 200}] last two [{3 100} {5 200}] last [{0 0} {2 100}]
}
