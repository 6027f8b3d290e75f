package gangpreemption

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/unplaced"
	"github.com/lockstep-project/lockstep/topology"
)

// rounds bounds how often the choice is made again because its victims, each within its budget, exceed one together.
const rounds = 4

// choice is who leaves.
type choice struct {
	victims []snapshot.Unit
	// lost is the work that leaves with them, in accelerator-seconds.
	lost int64
	// optimal says that no victims lose less.
	optimal bool
}

// choose finds the cheapest units that make room for the gang; the shortfall is that of a fleet without any of them. The
// domain follows from the victims, not the victims from a domain that looked good.
func choose(
	asked unplaced.Gang, units []snapshot.Unit, limits budgets, now time.Time,
) (choice, *topology.Shortfall, error) {
	costs := make([]int64, len(units))
	total := int64(1)
	for i, u := range units {
		costs[i] = lost(u, asked.Accelerators, now)
		total += costs[i]
	}
	protected := make([]bool, len(units))
	for i, u := range units {
		protected[i] = len(limits.exceeded(u.Pods)) > 0
	}
	var found topology.Eviction
	for range rounds {
		eviction, short, err := topology.Evict(asked.Ledger, asked.Gang, runs(units, costs, protected, total))
		if err != nil {
			return choice{}, nil, fmt.Errorf("choosing victims for %s: %w", asked.Gang.Name, err)
		}
		if short != nil {
			return choice{}, short, nil
		}
		found = eviction
		if !protectMore(units, found.Victims, limits, protected) {
			break
		}
	}
	out := choice{optimal: found.Optimal()}
	for _, i := range found.Victims {
		out.victims, out.lost = append(out.victims, units[i]), out.lost+costs[i]
	}
	return out, nil, nil
}

// runs are the units as the core sees them. Whoever a budget protects costs more than all others together.
func runs(units []snapshot.Unit, costs []int64, protected []bool, penalty int64) []topology.Running {
	out := make([]topology.Running, len(units))
	for i, u := range units {
		out[i] = topology.Running{Name: u.Name, Holds: u.Holds, Cost: costs[i], End: topology.EndUnknown}
		if protected[i] {
			out[i].Cost += penalty
		}
	}
	return out
}

// protectMore protects those of the victims that exceed a budget together, and reports whether any was not protected before.
func protectMore(units []snapshot.Unit, victims []int, limits budgets, protected []bool) bool {
	var pods []*corev1.Pod
	for _, i := range victims {
		pods = slices.Concat(pods, units[i].Pods)
	}
	over, more := limits.exceeded(pods), false
	for _, i := range victims {
		if !protected[i] && over.covers(units[i].Pods) {
			protected[i], more = true, true
		}
	}
	return more
}
