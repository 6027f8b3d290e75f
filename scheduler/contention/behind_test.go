package contention_test

import (
	"testing"
	"time"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// A driver may show a snapshot that is behind: a unit that is reported to have ended is still there. When the driver
// reports that this may have been so, the counts made there do not hold.
//
//	n0: free   n1: u1 for ten minutes   n2, n3: u2, u3   head: n0 and n1   later: one node for two hours
func TestMachine_ForgetsWhatAStaleSnapshotShowed(t *testing.T) {
	snap, units := full(t, 4)
	snap.Ledger.Free[0] = topology.Capacity{8}
	for _, u := range units[1:] {
		u.Preemptible = false
		snap.Running.Add(u)
	}
	snap.Running.Remove("u1")
	units[1].End = contention.End{At: snap.Now + 600, Certainty: contention.Certain}
	snap.Running.Add(units[1])
	m := contention.New(contention.DefaultPolicy())
	for i, id := range []contention.ID{"head", "later"} {
		e := gangOf(snap, 2-i)
		e.ID, e.Order.Name, e.Order.Priority, e.RunTime = id, string(id), 0, 2*hour
		e.Order.Since = time.Unix(snap.Now+int64(i), 0)
		m.Add(e)
		if actions := m.Turn(id, snap); placed(actions) {
			t.Fatalf("%s starts: %+v", id, actions)
		}
	}
	m.Ended(units[2], snap.Now)
	if actions := m.Turn("later", snap); placed(actions) {
		t.Fatalf("later starts where a unit is: %+v", actions)
	}
	snap.Running.Remove(units[2].ID)
	snap.Ledger.Free[2] = topology.Capacity{8}
	m.Reopen()
	if actions := m.Turn("later", snap); !placed(actions) {
		t.Errorf("later does not start on the node that is free: %+v", actions)
	}
}

// placed reports whether an entity starts.
func placed(actions []contention.Action) bool {
	for _, a := range actions {
		if _, ok := a.(contention.Placed); ok {
			return true
		}
	}
	return false
}
