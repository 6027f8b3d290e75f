package contention_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// full is a fleet of nodes, each with one preemptible unit on it. Those further back have run longer, and lose more.
func full(t *testing.T, nodes int) (*contention.World, []*contention.Unit) {
	t.Helper()
	const now, gpus = 10 * hour, 8
	w := &contention.World{Now: now, Running: &contention.Units{}, Accelerators: []int{0}, Fleet: int64(nodes) * gpus}
	var of []topology.Node
	var units []*contention.Unit
	for i := range nodes {
		of = append(of, topology.Node{Name: fmt.Sprint("n", i)})
		w.Ledger.Free = append(w.Ledger.Free, topology.Capacity{0})
		units = append(units, &contention.Unit{
			ID: contention.ID(
				fmt.Sprint("u", i),
			),
			Preemptible:  true,
			Accelerators: gpus,
			Started:      now - int64(i+1)*hour,
			Holds:        []topology.Held{{Node: i, Demand: topology.Capacity{gpus}}},
		})
	}
	var err error
	if w.Ledger.Tree, err = topology.NewTree(nil, of); err != nil {
		t.Fatal(err)
	}
	return w, units
}

// victims returns the units that a gang of whole nodes evicts.
func victims(t *testing.T, w *contention.World, units []*contention.Unit, members int) []contention.ID {
	t.Helper()
	for _, u := range units {
		w.Running.Add(u)
	}
	m := contention.New(contention.DefaultPolicy())
	m.Add(contention.Entity{
		ID:           "gang",
		Order:        contention.Order{Priority: 10, Since: time.Unix(w.Now, 0), Name: "gang"},
		Accelerators: int64(8 * members),
		Ask: contention.Ask{Needed: members, Gang: topology.Gang{
			Name: "gang", Members: make([]topology.Member, members),
			Shapes: []topology.Shape{{Demand: topology.Capacity{8}}},
		}},
	})
	for _, a := range m.Turn("gang", w) {
		if p, ok := a.(contention.Preempted); ok {
			return slices.Sorted(slices.Values(p.Victims))
		}
	}
	return nil
}

// A disruption budget is exceeded only if nothing else makes room, by the victims together, too.
func TestMachine_BudgetIsExceededLast(t *testing.T) {
	covered := func(budget int) []contention.Covered { return []contention.Covered{{Budget: budget, Members: 1}} }
	for name, c := range map[string]struct {
		covers  []int // the units that the budget covers
		allowed int
		members int
		want    []contention.ID
	}{
		"without a budget the cheapest leave":    {nil, 0, 2, []contention.ID{"u0", "u1"}},
		"a budget protects the cheapest":         {[]int{0}, 0, 1, []contention.ID{"u1"}},
		"a budget allows one of two":             {[]int{0, 1}, 1, 2, []contention.ID{"u0", "u2"}},
		"nothing else makes room":                {[]int{0, 1, 2}, 0, 1, []contention.ID{"u0"}},
		"together, and nothing else makes room ": {[]int{0, 1, 2}, 1, 3, []contention.ID{"u0", "u1", "u2"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, units := full(t, 3)
			w.Budgets = []int{c.allowed}
			for _, i := range c.covers {
				units[i].Budgets = covered(0)
			}
			if got := victims(t, w, units, c.members); !slices.Equal(got, c.want) {
				t.Errorf("%v leave, want %v", got, c.want)
			}
		})
	}
}

// What is lost is the work since the last checkpoint; a unit that leaves already loses nothing, and is not evicted again.
func TestMachine_VictimsLoseLeast(t *testing.T) {
	w, units := full(t, 3)
	units[2].SavesEvery = 50 * minute // it has run 180 minutes: 30 are lost
	if got := victims(t, w, units, 1); !slices.Equal(got, []contention.ID{"u2"}) {
		t.Errorf("%v leave, want the one that saved last", got)
	}
	w, units = full(t, 3)
	units[1].Leaving, units[1].End = true, contention.End{At: w.Now + minute, Certainty: contention.Certain}
	if got := victims(t, w, units, 1); got != nil {
		t.Errorf("%v are evicted although another one leaves", got)
	}
}
