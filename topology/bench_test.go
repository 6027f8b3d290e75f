package topology_test

import (
	"fmt"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

// fleet is blocks of 16 racks of 16 nodes, each with 8 devices, 64 cores, memory and pods. Every seventh node is half
// full, and every third node of all is full.
func fleet(nodes int) (*topology.Tree, []topology.Capacity) {
	levels := []topology.Level{{Name: "block", Key: "test/block"}, {Name: "rack", Key: "test/rack"}}
	all := make([]topology.Node, nodes)
	for i := range all {
		all[i] = topology.Node{Name: fmt.Sprintf("n-%d", i), Labels: map[string]string{
			"test/block": fmt.Sprintf("b-%d", i/256), "test/rack": fmt.Sprintf("r-%d", i/16%16),
		}}
	}
	free := make([]topology.Capacity, nodes)
	for i := range free {
		free[i] = topology.Capacity{8, 64000, 1 << 40, 110}
		switch {
		case i%3 == 0:
			free[i][0] = 0
		case i%7 == 0:
			free[i][0] = 4
		}
	}
	return topology.NewTree(levels, all), free
}

func workers(members int, required string) topology.Gang {
	g := topology.Gang{Name: "train", Required: required, Shapes: []topology.Shape{
		{Demand: topology.Capacity{8, 32000, 1 << 38, 1}},
		{Demand: topology.Capacity{0, 1000, 1 << 30, 1}},
	}}
	for m := range members {
		g.Members = append(g.Members, topology.Member{Name: fmt.Sprintf("worker-%d", m)})
	}
	return g
}

func BenchmarkPlace(b *testing.B) {
	launched := workers(64, "block")
	launched.Members[0].Shape = 1
	for _, nodes := range []int{1024, 4096, 16384} {
		tree, free := fleet(nodes)
		for _, c := range []struct {
			name string
			gang topology.Gang
		}{
			{"rack", workers(8, "rack")},
			{"block", workers(128, "block")},
			{"half", workers(nodes/4, "")},
			{"launcher", launched},
			{"refused", workers(17, "rack")},
		} {
			b.Run(fmt.Sprintf("nodes=%d/%s", nodes, c.name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, short := topology.Place(tree, free, c.gang); (short != nil) != (c.name == "refused") {
						b.Fatal(short)
					}
				}
			})
		}
	}
}

func BenchmarkNewTree(b *testing.B) {
	for _, nodes := range []int{1024, 4096, 16384} {
		tree, _ := fleet(nodes)
		all := make([]topology.Node, nodes)
		for i := range all {
			labels := make(map[string]string)
			for l, level := range tree.Levels() {
				d, _ := tree.Domain(i, l)
				labels[level.Key] = d.Path[l]
			}
			all[i] = topology.Node{Name: tree.Node(i), Labels: labels}
		}
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				topology.NewTree(tree.Levels(), all)
			}
		})
	}
}
