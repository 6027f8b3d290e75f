package contention

import (
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/topology"
)

// choice holds the victims, and the place of the entity without them.
type choice struct {
	victims   []*Unit
	cost      int64
	optimal   bool
	gang      topology.Gang
	placement topology.Placement
}

// choose finds the options whose departure loses least and makes room for the gang. A disruption budget is exceeded
// only if nothing else makes room: a protected option costs more than all others together. It is false if no departure
// helps.
func choose(snap *Snapshot, ask Ask, options []option) (choice, bool) {
	p := newProtection(snap, options)
	var found topology.Eviction
	for least := math.MaxInt; ; {
		eviction, short, err := topology.Evict(snap.Ledger, ask.Gang, p.running)
		if short != nil || err != nil {
			return choice{}, false
		}
		if excess := p.excess(eviction.Victims); excess < least {
			found, least = eviction, excess
		}
		if least == 0 || !p.more(eviction.Victims) {
			break
		}
	}
	out := choice{optimal: found.Optimal(), gang: ask.Gang, placement: found.Placement}
	for _, i := range found.Victims {
		out.victims = append(out.victims, options[i].units...)
	}
	out.cost = lost(out.victims, snap.Now, 0)
	return out, true
}

// exceeded reports whether the eviction of the units together exceeds a disruption budget. Units that leave already are
// counted by their budget.
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
