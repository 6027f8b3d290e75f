// Package victims says who has to leave for a gang for which there is no room: those whose departure loses least. It only
// says so; ending them is for the plugin that preempts.
package victims

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/lockstep-project/lockstep/scheduler/snapshot"
	"github.com/lockstep-project/lockstep/scheduler/unplaced"
	"github.com/lockstep-project/lockstep/topology"
)

// rounds bounds how often the choice is made again because its victims, each within its budget, exceed one together.
const rounds = 4

// Choice is who leaves.
type Choice struct {
	Victims []snapshot.Unit
	// Lost is the work that leaves with them, in accelerator-seconds.
	Lost int64
	// Optimal says that no victims lose less.
	Optimal bool
	// Placement is where the gang goes then; its nodes are those of the view that was asked about.
	Placement topology.Placement
}

// Choose finds the cheapest units that make room for the gang; the shortfall is that of a fleet without any of them. The
// domain follows from the victims, not the victims from a domain that looked good. The limits are the cluster's
// PodDisruptionBudgets; one is exceeded only if nothing else makes room.
func Choose(
	asked unplaced.Gang, groups fwk.PodGroupLister, limits []*policyv1.PodDisruptionBudget, now time.Time,
) (Choice, *topology.Shortfall, error) {
	return choose(asked, gather(asked, groups), limits, now)
}

func choose(
	asked unplaced.Gang, units []snapshot.Unit, limits budgets, now time.Time,
) (Choice, *topology.Shortfall, error) {
	costs := make([]int64, len(units))
	total := int64(1)
	for i, u := range units {
		costs[i] = Lost(u, asked.Accelerators, now)
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
			return Choice{}, nil, fmt.Errorf("choosing victims for %s: %w", asked.Gang.Name, err)
		}
		if short != nil {
			return Choice{}, short, nil
		}
		found = eviction
		if !protectMore(units, found.Victims, limits, protected) {
			break
		}
	}
	out := Choice{Optimal: found.Optimal(), Placement: found.Placement}
	for _, i := range found.Victims {
		out.Victims, out.Lost = append(out.Victims, units[i]), out.Lost+costs[i]
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
