package topology_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
	"github.com/lockstep-project/lockstep/topology/topologytest"
)

// The numbers that arithmetic could stumble over.
func extremes() []int64 {
	return []int64{math.MinInt64, -1, 0, 1, 3, 1 << 40, math.MaxInt64}
}

// asked is a scene in tree order with its ledger, so that one index means one node in both.
type asked struct {
	topologytest.Scene
	ledger topology.Ledger
	// treeErr is the reason for which a spoiled tree could not be made.
	treeErr error
}

func FuzzPlace(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(spoilAndPlace)
}

// Input that is wrong in up to three ways, without the fuzzer: no panic, and an error that names it.
func TestP9_AnyInputIsAnswered(t *testing.T) {
	for seed := range uint64(5000) {
		r := rand.New(rand.NewPCG(seed, 9))
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(r.Uint32())
		}
		spoilAndPlace(t, data)
	}
}

// spoilAndPlace draws a scene by the data, spoils it and checks the kind of its answer.
func spoilAndPlace(t *testing.T, data []byte) {
	t.Helper()
	left := data
	choose := func(n int) int {
		if len(left) == 0 {
			return 0
		}
		c := int(left[0]) % n
		left = left[1:]
		return c
	}
	options := topologytest.Options{Shapes: 3, Rules: topologytest.Rules(), Accelerator: choose(4) == 3}
	var q asked
	q.Scene, q.ledger, _ = topologytest.Draw(options, choose).InTree()
	mistakes := choose(4)
	for range mistakes {
		q.spoil(choose)
	}
	if q.treeErr != nil {
		checkInputError(t, q.treeErr)
	}
	p, short, err := topology.Place(q.ledger, q.Gang)
	checkAnswer(t, p, short, err)
	if mistakes > 0 {
		return
	}
	if err != nil && !refusable(err) {
		t.Errorf("%s\nis a good question: %v", q.Scene, err)
	}
	if err == nil && short == nil {
		if err := q.Check(p.Nodes); err != nil {
			t.Errorf("%s\nplaced on %v: %v", q.Scene, q.Names(p.Nodes), err)
		}
	}
}

// checkAnswer holds for every question: exactly one answer, and words that fit a line.
func checkAnswer(t *testing.T, p topology.Placement, short *topology.Shortfall, err error) {
	t.Helper()
	answers := 0
	if len(p.Nodes) > 0 {
		answers++
	}
	if short != nil {
		answers++
		if text := short.String(); text == "" || strings.ContainsAny(text, "\n\r") {
			t.Errorf("shortfall is not one line: %q", text)
		}
	}
	if err != nil {
		answers++
		checkInputError(t, err)
	}
	if answers != 1 {
		t.Errorf("%d answers: %v, %v, %v", answers, p.Nodes, short, err)
	}
}

// spoil makes one mistake that a caller could make.
func (q *asked) spoil(choose func(int) int) {
	number := extremes()[choose(len(extremes()))]
	switch choose(3) {
	case 0:
		q.spoilLedger(number, choose)
	case 1:
		q.spoilMembers(number, choose)
	case 2:
		q.spoilRules(number, choose)
	}
}

func (q *asked) spoilLedger(number int64, choose func(int) int) {
	l := &q.ledger
	node := choose(len(q.Nodes))
	switch choose(8) {
	case 0:
		l.Free = l.Free[:max(0, len(l.Free)-1)]
	case 1:
		l.Free = append(l.Free, nil)
	case 2:
		l.Total = make([]topology.Capacity, choose(len(q.Nodes)+2))
	case 3:
		if node < len(l.Free) {
			l.Free[node] = topology.Capacity{number}
		}
	case 4:
		l.Total = make([]topology.Capacity, len(q.Nodes))
		l.Total[node] = topology.Capacity{number}
	case 5:
		l.Tree = nil
	case 6:
		l.Tree = new(topology.Tree)
	case 7:
		levels, nodes := q.Levels, q.Nodes
		switch choose(4) {
		case 0:
			nodes = append(slices.Clip(nodes), topology.Node{Name: nodes[node].Name})
		case 1:
			levels = append(slices.Clip(levels), levels[choose(len(levels))])
		case 2:
			levels = append(slices.Clip(levels), topology.Level{Name: "two\nlines", Key: "k", Weight: number})
		case 3:
			levels = append([]topology.Level{{Accelerator: true}}, levels...)
		}
		l.Tree, q.treeErr = topology.NewTree(levels, nodes)
	}
}

func (q *asked) spoilMembers(number int64, choose func(int) int) {
	g := &q.Gang
	member := choose(max(1, len(g.Members)))
	shape := choose(max(1, len(g.Shapes)))
	if len(g.Members) == 0 || len(g.Shapes) == 0 { // an earlier mistake took them
		g.Min = int(number)
		return
	}
	switch choose(8) {
	case 0:
		g.Members = append(g.Members, topology.Member{Name: "lost\n", Shape: choose(9) - 4})
	case 1:
		g.Members = nil
	case 2:
		g.Members[member].Placed, g.Members[member].Node = true, int(number)
	case 3:
		g.Members[member].Placed, g.Members[member].Node = true, choose(len(q.Nodes))
	case 4:
		g.Shapes[shape].Barred = []string{"rule\nof two lines"}
	case 5:
		g.Shapes[shape].Demand = topology.Capacity{number, 1, 1}
	case 6:
		g.Shapes[shape].Demand = nil
	case 7:
		g.Shapes = nil
	}
}

func (q *asked) spoilRules(number int64, choose func(int) int) {
	g := &q.Gang
	level := []string{"", "l0", "l2", "nothing\nlike it", topology.LevelNode, "test/level-1"}[choose(6)]
	switch choose(9) {
	case 0:
		g.Required = level
	case 1:
		g.Preferred = level
	case 2:
		g.Segment = topology.Segment{Size: int(number), Level: level, Equal: choose(2) == 1}
	case 3:
		g.Spread = topology.Spread{Max: int(number), Level: level}
	case 4:
		g.Spares = topology.Spares{Nodes: int(number), Level: level}
	case 5:
		g.PerNode = int(number)
	case 6:
		g.Min = int(number)
	case 7:
		g.Communication = topology.Communication(number)
	case 8:
		g.Name = "two\nlines\t\x00"
	}
}
