package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// budgetRounds bounds how often victims are chosen again because, each within its disruption budget, they exceed one together.
const budgetRounds = 4

// choice is who is evicted, and where the entity goes then.
type choice struct {
	victims   []*Unit
	cost      int64
	optimal   bool
	gang      topology.Gang
	placement topology.Placement
}

// choose finds the units whose eviction loses least and makes room for the gang, whole units only. A disruption budget is
// exceeded only if nothing else makes room: a protected unit costs more than all others together. A restart costs so many seconds. It is
// false if no eviction helps.
func choose(w *World, ask Ask, units []*Unit, restart int64) (choice, bool) {
	running, total := make([]topology.Running, len(units)), int64(1)
	for i, u := range units {
		cost := u.Lost(w.Now) + u.restarts(restart)
		running[i] = topology.Running{Name: string(u.ID), Holds: u.Holds, Cost: cost, End: topology.EndUnknown}
		total += cost
	}
	protected := make([]bool, len(units))
	for i, u := range units {
		if exceeded(w.Budgets, u) {
			protected[i] = true
			running[i].Cost += total
		}
	}
	var found topology.Eviction
	for range budgetRounds {
		eviction, short, err := topology.Evict(w.Ledger, ask.Gang, running)
		if short != nil || err != nil {
			return choice{}, false
		}
		found = eviction
		if !protectMore(w.Budgets, units, found.Victims, protected, running, total) {
			break
		}
	}
	out := choice{optimal: found.Optimal(), gang: ask.Gang, placement: found.Placement}
	for _, i := range found.Victims {
		out.victims = append(out.victims, units[i])
		out.cost += units[i].Lost(w.Now)
	}
	return out, true
}

// exceeded reports whether the eviction of the units together exceeds a disruption budget. Units that leave already are counted
// by their budget.
func exceeded(allowed []int, units ...*Unit) bool {
	return slices.ContainsFunc(units, func(u *Unit) bool {
		return slices.ContainsFunc(
			u.Budgets,
			func(c Covered) bool { return disrupted(c.Budget, units) > allowed[c.Budget] },
		)
	})
}

// disrupted is how many members of the units a budget loses.
func disrupted(budget int, units []*Unit) int {
	n := 0
	for _, u := range units {
		if u.Leaving {
			continue
		}
		for _, c := range u.Budgets {
			if c.Budget == budget {
				n += c.Members
			}
		}
	}
	return n
}

// protectMore protects those of the victims that exceed a budget together, and reports whether one was not protected before.
func protectMore(
	allowed []int, units []*Unit, victims []int, protected []bool, running []topology.Running, penalty int64,
) bool {
	var leave []*Unit
	for _, i := range victims {
		leave = append(leave, units[i])
	}
	more := false
	for _, i := range victims {
		over := slices.ContainsFunc(units[i].Budgets, func(c Covered) bool {
			return disrupted(c.Budget, leave) > allowed[c.Budget]
		})
		if over && !protected[i] {
			protected[i], more = true, true
			running[i].Cost += penalty
		}
	}
	return more
}
