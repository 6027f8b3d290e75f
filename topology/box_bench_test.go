package topology_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/grid"
)

// BenchmarkBox decides about a box of 64 nodes in a torus that is nine tenths full of gangs of 16 nodes. 8x8x24 nodes
// of four chips are 96 cubes, the largest slice of a TPU v5p.
func BenchmarkBox(b *testing.B) {
	for _, size := range []grid.Size{{8, 8, 16}, {8, 8, 24}, {16, 16, 16}, {16, 32, 32}} {
		r := newRig(b, torusNodes("a", size, "xyz"))
		random := rand.New(rand.NewPCG(1, 2))
		left := random.Perm(size.Cells())
		for len(left) > size.Cells()/10 {
			var names []string
			for _, node := range left[:16] {
				names = append(names, r.ledger.Tree.Node(node))
			}
			r.take(b, int64(1+random.IntN(100)), int64(random.IntN(1000)), names...)
			left = left[16:]
		}
		g := boxOf(b, "4x4x4")
		b.Run(fmt.Sprintf("nodes=%d/ask=place", size.Cells()), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := topology.Place(r.ledger, g); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("nodes=%d/ask=reserve", size.Cells()), func(b *testing.B) {
			for b.Loop() {
				if _, ok, err := topology.Earliest(r.ledger, g, r.running); err != nil || !ok {
					b.Fatal(ok, err)
				}
			}
		})
		b.Run(fmt.Sprintf("nodes=%d/ask=evict", size.Cells()), func(b *testing.B) {
			for b.Loop() {
				if _, short, err := topology.Evict(r.ledger, g, r.running); err != nil || short != nil {
					b.Fatal(short, err)
				}
			}
		})
	}
}
