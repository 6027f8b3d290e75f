package contention_test

import (
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

func TestQuestion_IgnoresNamesAlone(t *testing.T) {
	base := func() topology.Gang {
		return topology.Gang{
			Name:      "a",
			Members:   make([]topology.Member, 2),
			Required:  "rack",
			Resources: []string{"gpus", "example.com/nic"},
			Shapes:    []topology.Shape{{Demand: topology.Capacity{1, 2}, Barred: []string{"", "taint"}}},
		}
	}
	want := contention.Question(base())
	same := base()
	same.Name, same.Members[0].Name, same.Shapes[0].Barred[1] = "b", "worker", "another rule"
	if contention.Question(same) != want {
		t.Error("names make a difference")
	}
	for name, change := range map[string]func(g *topology.Gang){
		"level":               func(g *topology.Gang) { g.Required = "block" },
		"members":             func(g *topology.Gang) { g.Members = g.Members[:1] },
		"minimum":             func(g *topology.Gang) { g.Min = 1 },
		"demand":              func(g *topology.Gang) { g.Shapes[0].Demand[1] = 3 },
		"barred":              func(g *topology.Gang) { g.Shapes[0].Barred[0] = "taint" },
		"segment":             func(g *topology.Gang) { g.Segment = topology.Segment{Size: 2, Level: "rack"} },
		"running":             func(g *topology.Gang) { g.Members[0].Placed = true },
		"late":                func(g *topology.Gang) { g.Members[1].Late = true },
		"unoffered resources": func(g *topology.Gang) { g.Resources = []string{"gpus", "example.com/hca"} },
	} {
		other := base()
		change(&other)
		if contention.Question(other) == want {
			t.Errorf("%s makes no difference", name)
		}
	}
}
