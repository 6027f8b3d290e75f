package topology_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockstep-project/lockstep/topology"
)

// question is one that has an answer until a case breaks it: two racks of two nodes, and a gang of four.
func question(t *testing.T) (topology.Ledger, topology.Gang) {
	t.Helper()
	levels := []topology.Level{{Name: "block", Key: "test/block"}, {Name: "rack", Key: "test/rack"}}
	var nodes []topology.Node
	for _, name := range []string{"a1", "a2", "b1", "b2"} {
		labels := map[string]string{"test/block": "x", "test/rack": name[:1]}
		nodes = append(nodes, topology.Node{Name: name, Labels: labels})
	}
	tree, err := topology.NewTree(levels, nodes)
	if err != nil {
		t.Fatal(err)
	}
	free := []topology.Capacity{{1}, {1}, {1}, {1}}
	shapes := []topology.Shape{{Demand: topology.Capacity{1}}}
	gang := topology.Gang{Name: "train", Members: make([]topology.Member, 4), Shapes: shapes}
	return topology.Ledger{Tree: tree, Free: free, Total: []topology.Capacity{{1}, {1}, {1}, {1}}}, gang
}

func TestP9_BadInputIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(l *topology.Ledger, g *topology.Gang)
		cause error
		names string // the part that the message must contain
	}{
		"no tree":      {func(l *topology.Ledger, _ *topology.Gang) { l.Tree = nil }, topology.ErrTree, "train"},
		"short free":   {func(l *topology.Ledger, _ *topology.Gang) { l.Free = l.Free[:3] }, topology.ErrLength, "3"},
		"long free":    {func(l *topology.Ledger, _ *topology.Gang) { l.Free = append(l.Free, nil) }, topology.ErrLength, "5"},
		"short total":  {func(l *topology.Ledger, _ *topology.Gang) { l.Total = l.Total[:3] }, topology.ErrLength, "3"},
		"short barred": {func(_ *topology.Ledger, g *topology.Gang) { g.Shapes[0].Barred = []string{""} }, topology.ErrLength, "1"},
		"free below zero": {
			func(l *topology.Ledger, _ *topology.Gang) { l.Free[2] = topology.Capacity{-1} }, topology.ErrNegative, "b1",
		},
		"total below zero": {
			func(l *topology.Ledger, _ *topology.Gang) { l.Total[3] = topology.Capacity{-7} }, topology.ErrNegative, "b2",
		},
		"demand below zero": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Shapes[0].Demand = topology.Capacity{-2} }, topology.ErrNegative, "-2",
		},
		"no members": {func(_ *topology.Ledger, g *topology.Gang) { g.Members = nil }, topology.ErrNoMembers, "train"},
		"no such shape": {
			func(_ *topology.Ledger, g *topology.Gang) {
				g.Members[2] = topology.Member{Name: "lost", Shape: 1}
			}, topology.ErrShape, "lost",
		},
		"shape below zero": {func(_ *topology.Ledger, g *topology.Gang) { g.Members[2].Shape = -1 }, topology.ErrShape, "-1"},
		"unknown required level": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Required = "cage" }, topology.ErrLevel, "cage",
		},
		"unknown preferred level": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Preferred = "cage" }, topology.ErrLevel, "cage",
		},
		"unknown segment level": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Segment = topology.Segment{Size: 2, Level: "cage"} },
			topology.ErrLevel, "cage",
		},
		"unknown spread level": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Spread = topology.Spread{Max: 2, Level: "cage"} },
			topology.ErrLevel, "cage",
		},
		"unknown spares level": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Spares = topology.Spares{Nodes: 1, Level: "cage"} },
			topology.ErrLevel, "cage",
		},
		"the known levels are named": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Required = "cage" }, topology.ErrLevel, "rack (test/rack)",
		},
		"segments without level": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Segment.Size = 2 }, topology.ErrNoLevel, "segment",
		},
		"spread without level": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Spread.Max = 2 }, topology.ErrNoLevel, "spread",
		},
		"spares without level": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Spares.Nodes = 1 }, topology.ErrNoLevel, "spare",
		},
		"segment below zero": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Segment = topology.Segment{Size: -2, Level: "rack"} },
			topology.ErrNegative, "-2",
		},
		"spread below zero": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Spread = topology.Spread{Max: -2, Level: "rack"} },
			topology.ErrNegative, "-2",
		},
		"spares below zero": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Spares = topology.Spares{Nodes: -2, Level: "rack"} },
			topology.ErrNegative, "-2",
		},
		"node cap below zero": {func(_ *topology.Ledger, g *topology.Gang) { g.PerNode = -2 }, topology.ErrNegative, "-2"},
		"min below zero":      {func(_ *topology.Ledger, g *topology.Gang) { g.Min = -2 }, topology.ErrNegative, "-2"},
		"min above":           {func(_ *topology.Ledger, g *topology.Gang) { g.Min = 5 }, topology.ErrMin, "5"},
		"unequal segments": {
			func(_ *topology.Ledger, g *topology.Gang) {
				g.Segment = topology.Segment{Size: 3, Level: "block", Equal: true}
			}, topology.ErrUnequal, "3",
		},
		"segment of more than any rack": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Segment = topology.Segment{Size: 3, Level: "rack"} },
			topology.ErrTooLarge, "rack",
		},
		"spread inside segments": {
			func(_ *topology.Ledger, g *topology.Gang) {
				g.Segment = topology.Segment{Size: 2, Level: "block"}
				g.Spread = topology.Spread{Max: 1, Level: "rack"}
			}, topology.ErrInside, "rack",
		},
		"spread on nodes inside segments": {
			func(_ *topology.Ledger, g *topology.Gang) {
				g.Segment = topology.Segment{Size: 2, Level: "rack"}
				g.Spread = topology.Spread{Max: 1, Level: topology.LevelNode}
			}, topology.ErrInside, "node",
		},
		"placed nowhere": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Members[1].Placed, g.Members[1].Node = true, 4 },
			topology.ErrNode, "4",
		},
		"placed below zero": {
			func(_ *topology.Ledger, g *topology.Gang) { g.Members[1].Placed, g.Members[1].Node = true, -1 },
			topology.ErrNode, "-1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			ledger, gang := question(t)
			c.spoil(&ledger, &gang)
			p, short, err := topology.Place(ledger, gang)
			if !errors.Is(err, c.cause) || len(p.Nodes) > 0 || short != nil {
				t.Fatalf("got %v, %v, error %v; want error %v", p.Nodes, short, err, c.cause)
			}
			checkInputError(t, err)
			if !strings.Contains(err.Error(), c.names) {
				t.Errorf("%q does not name %s", err, c.names)
			}
		})
	}
}

// checkInputError checks that the error is an InputError that a person can read.
func checkInputError(t *testing.T, err error) {
	t.Helper()
	var input *topology.InputError
	if !errors.As(err, &input) {
		t.Errorf("%v is a %T", err, err)
		return
	}
	if text := err.Error(); text == "" || strings.ContainsAny(text, "\n\r") || input.Cause == nil {
		t.Errorf("%q is not one line with a cause", text)
	}
}

// Not every strange question is wrong.
func TestP9_GoodInputIsNotRefused(t *testing.T) {
	for name, change := range map[string]func(l *topology.Ledger, g *topology.Gang){
		"as it is":               func(*topology.Ledger, *topology.Gang) {},
		"no totals":              func(l *topology.Ledger, _ *topology.Gang) { l.Total = nil },
		"min of all":             func(_ *topology.Ledger, g *topology.Gang) { g.Min = 4 },
		"a level by its key":     func(_ *topology.Ledger, g *topology.Gang) { g.Required = "test/block" },
		"the level of nodes":     func(_ *topology.Ledger, g *topology.Gang) { g.Preferred = "kubernetes.io/hostname" },
		"a level without a rule": func(_ *topology.Ledger, g *topology.Gang) { g.Segment.Level, g.Spread.Level = "rack", "rack" },
		"the node of a member that is not placed": func(_ *topology.Ledger, g *topology.Gang) { g.Members[0].Node = 99 },
		"segments that fit": func(_ *topology.Ledger, g *topology.Gang) {
			g.Segment = topology.Segment{Size: 2, Level: "rack", Equal: true}
		},
		"spread of segments": func(_ *topology.Ledger, g *topology.Gang) {
			g.Segment, g.Spread = topology.Segment{Size: 2, Level: "rack"}, topology.Spread{Max: 1, Level: "rack"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ledger, gang := question(t)
			change(&ledger, &gang)
			p, short, err := topology.Place(ledger, gang)
			if len(p.Nodes) != 4 || short != nil || err != nil {
				t.Errorf("got %v, %v, %v", p.Nodes, short, err)
			}
		})
	}
}

func TestNewTree_BadInputIsNamed(t *testing.T) {
	rack := topology.Level{Name: "rack", Key: "test/rack"}
	for name, c := range map[string]struct {
		levels []topology.Level
		nodes  []topology.Node
		names  string
	}{
		"two nodes of one name":     {nil, []topology.Node{{Name: "a"}, {Name: "b"}, {Name: "a"}}, "a"},
		"two levels of one name":    {[]topology.Level{rack, {Name: "rack", Key: "test/other"}}, nil, "rack"},
		"two levels of one key":     {[]topology.Level{rack, {Name: "other", Key: "test/rack"}}, nil, "test/rack"},
		"a level given twice":       {[]topology.Level{rack, rack}, nil, "rack"},
		"nodes of one name, labels": {[]topology.Level{rack}, twoAlike(), "tray"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := topology.NewTree(c.levels, c.nodes)
			if !errors.Is(err, topology.ErrDuplicate) {
				t.Fatalf("error %v, want %v", err, topology.ErrDuplicate)
			}
			checkInputError(t, err)
			if !strings.Contains(err.Error(), c.names) {
				t.Errorf("%q does not name %s", err, c.names)
			}
		})
	}
}

// twoAlike are nodes of one name that the tree does not put side by side.
func twoAlike() []topology.Node {
	return []topology.Node{
		{Name: "tray", Labels: map[string]string{"test/rack": "r1"}},
		{Name: "shelf", Labels: map[string]string{"test/rack": "r1"}},
		{Name: "tray", Labels: map[string]string{"test/rack": "r2"}},
	}
}
