package topology_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

// yard is a fleet of two blocks of two racks or so, in which gangs run.
type yard struct {
	ledger  topology.Ledger
	running []topology.Running
}

// yardLevels are blocks of racks.
func yardLevels() []topology.Level {
	return []topology.Level{
		{Name: "block", Key: "test/block", Weight: 400},
		{Name: "rack", Key: "test/rack", Weight: 100},
	}
}

// newYard makes a node per number of free places, "|" ending a rack and "/" a block.
func newYard(tb testing.TB, free string) *yard {
	tb.Helper()
	var nodes []topology.Node
	y := &yard{}
	block, rack := 0, 0
	for _, c := range free {
		switch c {
		case '/':
			block, rack = block+1, 0
		case '|':
			rack++
		default:
			nodes = append(nodes, topology.Node{Name: fmt.Sprintf("n%d", len(nodes)), Labels: map[string]string{
				"test/block": fmt.Sprint("b", block), "test/rack": fmt.Sprint("r", rack),
			}})
			y.ledger.Free = append(y.ledger.Free, topology.Capacity{int64(c - '0')})
		}
	}
	tree, err := topology.NewTree(yardLevels(), nodes)
	if err != nil {
		tb.Fatal(err)
	}
	y.ledger.Tree = tree
	return y
}

// run adds a gang that holds one place on each of the nodes.
func (y *yard) run(name string, cost, end int64, nodes ...int) {
	r := topology.Running{Name: name, Cost: cost, End: end}
	for _, n := range nodes {
		r.Holds = append(r.Holds, topology.Held{Node: n, Demand: topology.Capacity{1}})
	}
	y.running = append(y.running, r)
}

// without is the ledger after some gangs have left: of these, bit by bit.
func (y *yard) without(gone uint) topology.Ledger {
	l := y.ledger
	l.Free = make([]topology.Capacity, len(y.ledger.Free))
	for i, free := range y.ledger.Free {
		l.Free[i] = slices.Clone(free)
	}
	for i, r := range y.running {
		if gone&(1<<i) == 0 {
			continue
		}
		for _, h := range r.Holds {
			for k, d := range h.Demand {
				l.Free[h.Node][k] += d
			}
		}
	}
	return l
}

func gangOf(members int) topology.Gang {
	return topology.Gang{
		Name:    "new",
		Members: make([]topology.Member, members),
		Shapes:  []topology.Shape{{Demand: topology.Capacity{1}}},
	}
}
