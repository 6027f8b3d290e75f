package contention

import (
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// budgetRounds bounds the number of times that victims are chosen again because, each within its disruption budget,
// they exceed one together.
const budgetRounds = 4

// choice holds the victims, and the place of the entity without them.
type choice struct {
	victims   []*Unit
	cost      int64
	optimal   bool
	gang      topology.Gang
	placement topology.Placement
}

// choose finds the options whose departure loses least and makes room for the gang. A disruption budget is exceeded only if nothing else makes room: a
// protected option costs more than all others together. It is false if no departure helps.
func choose(w *World, ask Ask, options []option) (choice, bool) {
	running, total := make([]topology.Running, len(options)), int64(1)
	for i, o := range options {
		running[i] = topology.Running{
			Name: string(o.units[0].ID), Holds: o.holds, Cost: o.cost, End: topology.EndUnknown,
		}
		total += o.cost
	}
	protected := make([]bool, len(options))
	for i, o := range options {
		if exceeded(w.Budgets, o.units...) {
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
		if !protectMore(w.Budgets, options, found.Victims, protected, running, total) {
			break
		}
	}
	out := choice{optimal: found.Optimal(), gang: ask.Gang, placement: found.Placement}
	for _, i := range found.Victims {
		out.victims = append(out.victims, options[i].units...)
	}
	out.cost = lost(out.victims, w.Now, 0)
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

// disrupted returns the number of members of the units that a budget loses.
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
	allowed []int, options []option, victims []int, protected []bool, running []topology.Running, penalty int64,
) bool {
	var leave []*Unit
	for _, i := range victims {
		leave = append(leave, options[i].units...)
	}
	more := false
	for _, i := range victims {
		over := slices.ContainsFunc(options[i].units, func(u *Unit) bool {
			return slices.ContainsFunc(u.Budgets, func(c Covered) bool {
				return disrupted(c.Budget, leave) > allowed[c.Budget]
			})
		})
		if over && !protected[i] {
			protected[i], more = true, true
			running[i].Cost += penalty
		}
	}
	return more
}
