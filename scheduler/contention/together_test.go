package contention_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// Two racks of four nodes have a free node each. A gang of two nodes whose discipline keeps it together waits for a
// rack. Another one that asks the same, of a profile whose gangs may be apart, is not refused with it.
func TestMachine_DisciplinesDifferInTogether(t *testing.T) {
	w, units := full(t, 8)
	var nodes []topology.Node
	for i := range 8 {
		nodes = append(nodes, topology.Node{
			Name: fmt.Sprint("n", i), Labels: map[string]string{"test/rack": fmt.Sprint("r", i/4)},
		})
		w.Ledger.Total = append(w.Ledger.Total, topology.Capacity{8})
	}
	var err error
	w.Ledger.Tree, err = topology.NewTree([]topology.Level{{Name: "rack", Key: "test/rack", Weight: 100}}, nodes)
	if err != nil {
		t.Fatal(err)
	}
	for i, u := range units {
		if i%4 == 3 {
			w.Ledger.Free[i] = topology.Capacity{8}
			continue
		}
		u.Preemptible, u.End = false, contention.End{At: w.Now + 2*hour, Certainty: contention.Certain}
		w.Running.Add(u)
	}
	policy := contention.DefaultPolicy()
	policy.MaxLeases = 1 // more entities that may have one would be tried for it
	m := contention.New(policy)
	for i, percent := range []int64{50, 0} {
		discipline := contention.Promise()
		discipline.Together = percent
		e := gangOf(w, 2)
		e.ID = contention.ID(fmt.Sprint("together-", percent))
		e.Order.Name, e.Order.Priority, e.Order.Since = string(e.ID), 0, time.Unix(w.Now+int64(i), 0)
		e.RunTime, e.Discipline = hour, &discipline
		m.Add(e)
	}
	var starts []contention.ID
	for id, ok := m.Next(); ok; id, ok = m.Next() {
		if placed(m.Turn(id, w)) {
			starts = append(starts, id)
			break // the World would have to show it
		}
	}
	if !slices.Equal(starts, []contention.ID{"together-0"}) {
		t.Errorf("%v start", starts)
	}
}
