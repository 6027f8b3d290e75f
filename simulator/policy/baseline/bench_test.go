package baseline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/simulator/policy/baseline"
	"github.com/lockstep-project/lockstep/topology"
)

// A decision about a gang of eight whole nodes on 5,000 nodes, half of them taken.
func BenchmarkPlace(b *testing.B) {
	var nodes strings.Builder
	for n := range 5000 {
		fmt.Fprintf(&nodes, "block%d/rack%d/n%d=%d/8 ", n/500, n/20, n, n*7919%2*8)
	}
	l := fleet(b, "block rack", nodes.String())
	g := pods(8, 8)
	g.Preferred = "rack"
	for _, name := range baseline.Names() {
		b.Run(name, func(b *testing.B) {
			policy := named(b, name)
			for b.Loop() {
				if _, ok := policy.Place(l, g); !ok {
					b.Fatal("no place")
				}
			}
		})
	}
	b.Run("refused/"+baseline.FirstFit, func(b *testing.B) {
		full := topology.Ledger{Tree: l.Tree, Free: make([]topology.Capacity, 5000)}
		policy := named(b, baseline.FirstFit)
		for b.Loop() {
			if _, ok := policy.Place(full, g); ok {
				b.Fatal("a place")
			}
		}
	})
}
