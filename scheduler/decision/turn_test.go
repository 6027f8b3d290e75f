package decision_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockstep-project/lockstep/scheduler/decision"
	"github.com/lockstep-project/lockstep/topology"
)

// scene is full nodes of eight GPUs but for those that are free; what runs on the others ends at that instant.
func scene(t *testing.T, nodes int, end int64, free ...int) (topology.Ledger, []topology.Running) {
	t.Helper()
	ledger := topology.Ledger{}
	var all []topology.Node
	var running []topology.Running
	for i := range nodes {
		name := fmt.Sprint("n", i)
		all, ledger.Free = append(all, topology.Node{Name: name}), append(ledger.Free, topology.Capacity{0})
		if slices.Contains(free, i) {
			ledger.Free[i][0] = 8
			continue
		}
		running = append(running, topology.Running{
			Name: "on-" + name, Holds: []topology.Held{{Node: i, Demand: topology.Capacity{8}}}, End: end,
		})
	}
	var err error
	if ledger.Tree, err = topology.NewTree(nil, all); err != nil {
		t.Fatal(err)
	}
	return ledger, running
}

// ask is a gang of whole nodes that would end then.
func ask(name string, members int, end int64) decision.Ask {
	return decision.Ask{Needed: members, End: end, Gang: topology.Gang{
		Name: name, Members: make([]topology.Member, members), Shapes: []topology.Shape{{Demand: topology.Capacity{8}}},
	}}
}

func turnOf(
	t *testing.T, ledger topology.Ledger, running []topology.Running, head decision.Ask,
) (decision.Turn, *topology.Reservation) {
	t.Helper()
	kept := decision.Keep(ledger, running, head)
	if kept == nil {
		t.Fatal("no place can be kept: the scene is wrong")
	}
	return decision.Turn{
		Head: head, Running: func() []topology.Running { return running },
		Keeps: func(node int) bool { return slices.Contains(kept.Placement.Nodes, node) },
	}, kept
}

// The nodes 0 and 2 are taken until 100. A gang of two waits; another one that runs longer takes node 1, which had been kept, and
// delays nobody: the first has its place on the other two then. That is the place that is kept from now on, or the next
// would get it.
func TestThePlaceThatIsKeptMovesAsideForWhoPasses(t *testing.T) {
	ledger, running := scene(t, 3, 100, 1)
	turn, kept := turnOf(t, ledger, running, ask("first", 2, topology.EndUnknown))
	if !turn.Keeps(1) {
		t.Fatalf("the place is %v: the scene is wrong", kept)
	}
	answer, moved := turn.Behind(ledger, ask("long", 1, 200))
	if answer.Refusal != nil {
		t.Fatal(answer.Refusal)
	}
	if moved == nil || !slices.Equal(moved.Placement.Nodes, []int{0, 2}) || moved.At != 100 {
		t.Errorf("kept is %+v, want the nodes 0 and 2 from 100", moved)
	}
}

// Nobody knows when any of those end that run. Who comes does not get what becomes free of the place, although there would be room
// enough beside it when all others have left: the next would have that too, and the first would never start.
func TestAPlaceThatIsFreeSomedayIsKeptFromAll(t *testing.T) {
	for name, end := range map[string]int64{"nobody knows": topology.EndUnknown, "it is short": 100} {
		t.Run(name, func(t *testing.T) {
			full, running := scene(t, 4, decision.Someday)
			turn, kept := turnOf(t, full, running, ask("first", 2, topology.EndUnknown))
			inside, outside := kept.Placement.Nodes[0], 0
			for slices.Contains(kept.Placement.Nodes, outside) {
				outside++
			}
			ledger, running := scene(t, 4, decision.Someday, inside)
			turn.Running = func() []topology.Running { return running }
			if answer, _ := turn.Behind(ledger, ask("small", 1, end)); answer.Refusal == nil {
				t.Errorf("it takes node %v of the place %v", answer.Placement.Nodes, kept.Placement.Nodes)
			}
			ledger, running = scene(t, 4, decision.Someday, inside, outside)
			ledger.Free[inside][0] = 7 // something small is there still
			ledger.Free[outside][0] = 8
			if answer, _ := turn.Behind(ledger, ask("small", 1, end)); answer.Refusal != nil {
				t.Errorf("it does not get node %d, which is not of the place: %s", outside, answer.Refusal)
			}
		})
	}
}

// The devices of both cannot be counted together. Who runs longer does not get the free node of the place, though there would be room
// beside the first for all that is counted; who ends before does.
func TestWhoCannotBeCountedWithTheFirstKeepsOffItsPlace(t *testing.T) {
	ledger, running := scene(t, 3, 100, 1)
	turn, kept := turnOf(t, ledger, running, ask("first", 2, topology.EndUnknown))
	turn.Apart = true
	if answer, _ := turn.Behind(ledger, ask("long", 1, 200)); answer.Refusal == nil {
		t.Errorf("it is on %v of the place %v", answer.Placement.Nodes, kept.Placement.Nodes)
	}
	if answer, _ := turn.Behind(ledger, ask("short", 1, 100)); answer.Refusal != nil {
		t.Errorf("who ends in time waits: %v", answer.Refusal)
	}
}
