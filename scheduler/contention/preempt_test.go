package contention_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// full is a fleet of nodes, each with one preemptible unit on it. Those further back have run longer, and lose more.
func full(t *testing.T, nodes int) (*contention.Snapshot, []*contention.Unit) {
	t.Helper()
	const now, gpus = 10 * hour, 8
	snap := &contention.Snapshot{
		Now:          now,
		Running:      &contention.Units{},
		Accelerators: []int{0},
		Fleet:        int64(nodes) * gpus,
	}
	var of []topology.Node
	var units []*contention.Unit
	for i := range nodes {
		of = append(of, topology.Node{Name: fmt.Sprint("n", i)})
		snap.Ledger.Free = append(snap.Ledger.Free, topology.Capacity{0})
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
	if snap.Ledger.Tree, err = topology.NewTree(nil, of); err != nil {
		t.Fatal(err)
	}
	return snap, units
}

// victims returns the units that a gang of whole nodes evicts.
func victims(t *testing.T, snap *contention.Snapshot, units []*contention.Unit, members int) []contention.ID {
	t.Helper()
	for _, u := range units {
		snap.Running.Add(u)
	}
	m := contention.New(contention.DefaultPolicy())
	m.Add(gangOf(snap, members))
	return evicted(m.Turn("gang", snap))
}

// gangOf returns a gang of whole nodes that evicts whatever that costs.
func gangOf(snap *contention.Snapshot, members int) contention.Entity {
	return contention.Entity{
		ID:           "gang",
		Order:        contention.Order{Priority: contention.Urgent + 10, Since: time.Unix(snap.Now, 0), Name: "gang"},
		Accelerators: int64(8 * members),
		Ask: contention.Ask{Needed: members, Gang: topology.Gang{
			Name: "gang", Members: make([]topology.Member, members),
			Shapes: []topology.Shape{{Demand: topology.Capacity{8}}},
		}},
	}
}

// evicted returns the units that have to leave, by ID.
func evicted(actions []contention.Action) []contention.ID {
	for _, a := range actions {
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
			snap, units := full(t, 3)
			snap.Budgets = []int{c.allowed}
			for _, i := range c.covers {
				units[i].Budgets = covered(0)
			}
			if got := victims(t, snap, units, c.members); !slices.Equal(got, c.want) {
				t.Errorf("%v leave, want %v", got, c.want)
			}
		})
	}
}

// One of a hundred replicas of a service may leave, and many sets of ten replicas lose less than ten other units do.
func TestMachine_BudgetOfManyReplicasIsKept(t *testing.T) {
	const replicas, members = 100, 10
	snap, units := full(t, 2*replicas)
	snap.Budgets = []int{1}
	for i, u := range units {
		u.Started = snap.Now - int64(i+1)*minute
		if i < replicas {
			u.Budgets = []contention.Covered{{Budget: 0, Members: 1}}
		}
	}
	got := victims(t, snap, units, members)
	covered := 0
	for _, u := range units[:replicas] {
		if slices.Contains(got, u.ID) {
			covered++
		}
	}
	if len(got) != members || covered > 1 {
		t.Errorf("%v leave: %d of the budget, which allows 1", got, covered)
	}
}

// Ten services of ten replicas each allow one of them to leave: ten nodes are free if one of each does.
func TestMachine_ManyBudgetsAreKept(t *testing.T) {
	const services = 10
	snap, units := full(t, services*services)
	snap.Budgets = make([]int, services)
	for i, u := range units {
		u.Started = snap.Now - int64(i+1)*minute
		u.Budgets, snap.Budgets[i/services] = []contention.Covered{{Budget: i / services, Members: 1}}, 1
	}
	var want []contention.ID
	for service := range services {
		want = append(want, contention.ID(fmt.Sprint("u", service*services)))
	}
	if got := victims(t, snap, units, services); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("%v leave, want the cheapest of each service", got)
	}
}

// Only the members that have to start make an eviction pay: an elastic gang may name others that request whatever they
// like.
func TestMachine_SurplusWinsNothing(t *testing.T) {
	for _, surplus := range []int64{8, 1_000_000} {
		snap, units := full(t, 1)
		snap.Running.Add(units[0])
		e := gangOf(snap, 2)
		e.Order.Priority, e.Ask.Needed = 1, 1
		e.Ask.Gang.Shapes = append(e.Ask.Gang.Shapes, topology.Shape{Demand: topology.Capacity{surplus}})
		e.Ask.Gang.Members[1].Shape, e.Accelerators = 1, 8+surplus
		m := contention.New(contention.DefaultPolicy())
		m.Add(e)
		if got := evicted(m.Turn("gang", snap)); got != nil {
			t.Errorf("%v are evicted for one member of 8 and one of %d, want none", got, surplus)
		}
	}
}

// The loss is the work since the last checkpoint; a unit that already leaves loses nothing, and is not evicted again.
func TestMachine_VictimsLoseLeast(t *testing.T) {
	snap, units := full(t, 3)
	units[2].SavesEvery = 50 * minute // it has run 180 minutes: 30 are lost
	if got := victims(t, snap, units, 1); !slices.Equal(got, []contention.ID{"u2"}) {
		t.Errorf("%v leave, want the one that saved last", got)
	}
	snap, units = full(t, 3)
	units[1].Leaving, units[1].End = true, contention.End{At: snap.Now + minute, Certainty: contention.Certain}
	if got := victims(t, snap, units, 1); got != nil {
		t.Errorf("%v are evicted although another one leaves", got)
	}
}

// A preemptor whose victims leave chooses others when a node of its place is away: no member can start there, though a
// victim has left and the ledger counts the node's capacity as free.
func TestMachine_PlaceOfVictimsIsAway(t *testing.T) {
	snap, units := full(t, 3)
	for _, u := range units {
		snap.Running.Add(u)
	}
	m := contention.New(contention.DefaultPolicy())
	m.Add(gangOf(snap, 2))
	if got := evicted(m.Turn("gang", snap)); !slices.Equal(got, []contention.ID{"u0", "u1"}) {
		t.Fatalf("%v leave, want the two that lose least", got)
	}
	leaving := *units[1]
	leaving.Leaving, leaving.End = true, contention.End{At: snap.Now + 10*minute, Certainty: contention.Certain}
	snap.Running.Add(&leaving)
	snap.Running.Remove("u0")
	snap.Ledger.Free[0] = topology.Capacity{8}
	snap.Now += minute
	snap.Away = func(node int) (int64, bool) { return snap.Now, node == 0 }
	m.Ended(units[0], snap.Now)
	m.Taken([]int{0})
	if got := evicted(m.Turn("gang", snap)); !slices.Equal(got, []contention.ID{"u2"}) {
		t.Errorf("%v leave, want the one on the third node", got)
	}
}

// A preemptor is evaluated when the last of its victims has left, and when another unit has. When nodes got other
// numbers, it is evaluated at each end.
func TestMachine_PreemptorAwaitsItsVictims(t *testing.T) {
	for name, renumbered := range map[string]bool{"": false, "nodes got other numbers": true} {
		t.Run(name, func(t *testing.T) {
			snap, units := full(t, 4)
			for _, u := range units {
				snap.Running.Add(u)
			}
			snap.Held = func(l *contention.Lease) []topology.Held { return slices.Clone(l.Holds) }
			m := contention.New(contention.DefaultPolicy())
			m.Add(gangOf(snap, 3))
			if got := evicted(m.Turn("gang", snap)); len(got) != 3 {
				t.Fatalf("%v leave, want three", got)
			}
			if renumbered {
				snap.Coordinates = "others"
				m.Observe(snap)
			}
			for i, want := range []bool{renumbered, renumbered, true} {
				m.Ended(units[i], snap.Now)
				snap.Running.Remove(units[i].ID)
				snap.Ledger.Free[i] = topology.Capacity{8}
				if got := m.Candidate("gang"); got != want {
					t.Errorf("evaluated after the end of %s: %v", units[i].ID, got)
				}
			}
		})
	}
}

// The end of a unit that is no victim may make room elsewhere.
func TestMachine_PreemptorIsEvaluatedForOthers(t *testing.T) {
	snap, units := full(t, 4)
	for _, u := range units {
		snap.Running.Add(u)
	}
	m := contention.New(contention.DefaultPolicy())
	m.Add(gangOf(snap, 3))
	m.Turn("gang", snap)
	if m.Ended(units[3], snap.Now); !m.Candidate("gang") {
		t.Error("the preemptor is not evaluated when another unit has ended")
	}
}

// So may that of a victim that was elsewhere, too.
//
//	n0, n1: u0   n2, n3: u2   gang: three nodes
func TestMachine_PreemptorIsEvaluatedForRoomElsewhere(t *testing.T) {
	snap, units := full(t, 4)
	for _, i := range []int{0, 2} {
		units[i].Holds = append(units[i].Holds, units[i+1].Holds...)
		snap.Running.Add(units[i])
	}
	m := contention.New(contention.DefaultPolicy())
	m.Add(gangOf(snap, 3))
	m.Turn("gang", snap)
	if got := m.Lease("gang").Nodes; !slices.Equal(got, []int{0, 1, 2}) {
		t.Fatalf("the place is %v", got)
	}
	if m.Ended(units[2], snap.Now); !m.Candidate("gang") {
		t.Error("the preemptor is not evaluated")
	}
}

// Of units that lose the same the one of the lowest priority leaves, whatever it is called: another one would take its
// place in its turn.
func TestMachine_LowestPriorityOfEqualsLeaves(t *testing.T) {
	snap, units := full(t, 2)
	for _, u := range units {
		u.Started = snap.Now - hour
	}
	units[0].Priority = 5
	if got := victims(t, snap, units, 1); !slices.Equal(got, []contention.ID{"u1"}) {
		t.Errorf("%v leave, want the one of the lowest priority", got)
	}
}

// The victims are compared with a try of every set of units: fewest that a disruption budget protects, then least loss.
func TestMachine_VictimsAgainstAllSets(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		const nodes = 12
		snap, _ := full(t, nodes)
		var units []*contention.Unit
		for next := 0; next < nodes; {
			size := min(1+r.IntN(3), nodes-next)
			u := &contention.Unit{
				ID: contention.ID(fmt.Sprint("u", len(units))), Preemptible: true, Accelerators: int64(size) * 8,
				Started: snap.Now - int64(r.IntN(100))*minute,
			}
			for range size {
				u.Holds = append(u.Holds, topology.Held{Node: next, Demand: topology.Capacity{8}})
				next++
			}
			if r.IntN(4) == 0 {
				u.Budgets = []contention.Covered{{Budget: len(snap.Budgets), Members: size}}
				snap.Budgets = append(snap.Budgets, 0)
			}
			units = append(units, u)
		}
		members := 1 + r.IntN(4)
		broken, lost := toll(snap, units, victims(t, snap, units, members))
		wantBroken, wantLost := leastToll(snap, units, members)
		if broken != wantBroken || lost != wantLost {
			t.Errorf("seed %d: the victims lose %d and break %d budgets; %d and %d would do",
				seed, lost, broken, wantLost, wantBroken)
		}
	}
}

// toll returns the number of budgets that the eviction of units breaks, and the accelerator-seconds that it loses.
func toll(snap *contention.Snapshot, units []*contention.Unit, evicted []contention.ID) (broken int, lost int64) {
	for _, u := range units {
		if slices.Contains(evicted, u.ID) {
			broken, lost = broken+len(u.Budgets), lost+u.Lost(snap.Now)
		}
	}
	return broken, lost
}

// leastToll returns the smallest toll of all sets of units whose eviction frees one node for each member.
func leastToll(snap *contention.Snapshot, units []*contention.Unit, members int) (broken int, lost int64) {
	broken = -1
	for set := range 1 << len(units) {
		var evicted []contention.ID
		free := 0
		for i, u := range units {
			if set>>i&1 == 1 {
				evicted, free = append(evicted, u.ID), free+len(u.Holds)
			}
		}
		if free < members {
			continue
		}
		if b, l := toll(snap, units, evicted); broken < 0 || b < broken || b == broken && l < lost {
			broken, lost = b, l
		}
	}
	return broken, lost
}

// An entity has one place. An entity whose start was cut off holds its nodes; if it has to preempt there, the nodes of
// its victims are its place, also when it is evaluated again before the victims have left, and no place stays reserved
// after it has started. (Package simulator/faults, seed 1410.)
func TestPreemption_HasOnePlace(t *testing.T) {
	snap, units := full(t, 2)
	for _, u := range units {
		snap.Running.Add(u)
	}
	m := contention.New(contention.DefaultPolicy())
	gang := gangOf(snap, 2)
	m.Add(gang)
	m.Hold(contention.Lease{
		Owner: gang.ID, Order: gang.Order, Reason: contention.Replacement, Expiry: snap.Now + 300,
		Holds: []topology.Held{{Node: 0, Demand: topology.Capacity{8}}},
	}, snap.Now)
	for range 2 {
		m.Turn(gang.ID, snap)
		if leases := m.Leases(); len(leases) != 1 || leases[0].Reason != contention.Preemption {
			t.Fatalf("it has the leases %v", leases)
		}
	}
	m.Started(gang.ID, []int{0, 1}, snap.Now)
	if leases := m.Leases(); len(leases) > 0 {
		t.Errorf("it has started, and has the leases %v", leases)
	}
}
