package contention_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// Two racks of four nodes have a free node each. A gang of two nodes whose discipline keeps it together waits for a
// rack. Another one that asks the same, of a profile whose gangs may be apart, is not refused with it.
func TestMachine_DisciplinesDifferInTogether(t *testing.T) {
	own, apart := contention.Promise(), contention.Promise()
	apart.Together = 0
	for name, first := range map[string]*contention.Discipline{"its own": &own, "the policy's": nil} {
		t.Run(name, func(t *testing.T) {
			if starts := firstStart(t, first, &apart); starts != "second" {
				t.Errorf("%q starts first", starts)
			}
		})
	}
}

// firstStart has two gangs come one after the other, each with a discipline, and returns the one that starts first.
func firstStart(t *testing.T, disciplines ...*contention.Discipline) contention.ID {
	t.Helper()
	snap, units := full(t, 8)
	var nodes []topology.Node
	for i := range 8 {
		nodes = append(nodes, topology.Node{
			Name: fmt.Sprint("n", i), Labels: map[string]string{"test/rack": fmt.Sprint("r", i/4)},
		})
		snap.Ledger.Total = append(snap.Ledger.Total, topology.Capacity{8})
	}
	var err error
	snap.Ledger.Tree, err = topology.NewTree([]topology.Level{{Name: "rack", Key: "test/rack", Weight: 100}}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	for i, u := range units {
		if i%4 == 3 {
			snap.Ledger.Free[i] = topology.Capacity{8}
			continue
		}
		u.Preemptible, u.End = false, contention.End{At: snap.Now + 2*hour, Certainty: contention.Certain}
		snap.Running.Add(u)
	}
	policy := contention.DefaultPolicy()
	policy.MaxLeases = 1 // more entities that may have one would be tried for it
	m := contention.New(policy)
	for i, d := range disciplines {
		e := gangOf(snap, 2)
		e.ID = []contention.ID{"first", "second"}[i]
		e.Order.Name, e.Order.Priority, e.Order.Since = string(e.ID), 0, time.Unix(snap.Now+int64(i), 0)
		e.RunTime, e.Discipline = hour, d
		m.Add(e)
	}
	for id, ok := m.Next(); ok; id, ok = m.Next() {
		if placed(m.Turn(id, snap)) {
			return id
		}
	}
	return ""
}
