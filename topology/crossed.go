package topology

import (
	"iter"
	"slices"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// crossed decides when accelerator domains cross those of the network. No single tree has both whole, so each layout
// makes a plan with all weights, though it cuts the other's domains; the cheaper one in truth is taken. The bound is
// the sum of the costs of each hierarchy alone, which no placement undercuts: a gang that could be in one rack, or in
// one clique that lies across two racks, pays for no rack in the first plan and for no clique in the second, so the
// bound is that of neither; one of the two is paid for.
func (a *ask) crossed(ls *layouts) (plan, bool, error) {
	home, err := a.home(ls)
	if err != nil {
		return plan{}, false, err
	}
	best, cost, found := plan{}, int64(knapsack.Never), false
	bound := int64(0)
	for i := range ls.all {
		lay := &ls.all[i]
		parts, low := a.parts(ls, lay), int64(knapsack.Never)
		for part := range parts {
			if least, ok := part.alone(ls, lay, home); ok {
				low = min(low, least)
			}
		}
		if low == knapsack.Never {
			return plan{}, false, nil
		}
		bound += low
		if home != nil && home != lay {
			continue
		}
		for part := range parts {
			s := newSolver(part, lay, a.weights(), part.rules)
			c, ok := s.best()
			if !ok {
				continue
			}
			p := plan{nodes: s.ranked(s.trace(c.v)), least: s.fewestDomains()}
			if _, total := a.cost(p, a.weights()); total < cost {
				best, cost, found = p, total, true
			}
		}
	}
	best.bound = bound
	return best, found, nil
}

// home returns the layout that does not divide the domains of the segments, spread and spares rules; nil if there are
// no such rules.
func (a *ask) home(ls *layouts) (*layout, error) {
	var home *layout
	for _, level := range []int{a.rules.segment, a.rules.spread, a.rules.spares} {
		if level < 0 || level == len(ls.first().ladder) {
			continue
		}
		holding := ls.holding(level)
		if home != nil && home != holding {
			return nil, &InputError{
				Of:    "gang " + a.gang.Name,
				What:  "segments, spread and spares over network and accelerator levels that cross",
				Hint:  "name levels of one hierarchy",
				Cause: ErrCombination,
			}
		}
		home = holding
	}
	return home, nil
}

// alone returns the least cost of the gang if only the layout's own hierarchy cost anything. Rules that the layout
// cannot enforce are left out, which can only lower it.
func (a *ask) alone(ls *layouts, lay, home *layout) (int64, bool) {
	r := a.rules
	r.spares = -1
	if home != nil && home != lay {
		r.segment, r.spread, r.spares = -1, -1, -1
	}
	if r.required >= 0 && ls.holding(r.required) != lay {
		r.required = -1
	}
	weights := a.weights()
	for level := range weights {
		if ls.holding(level) != lay {
			weights[level] = 0
		}
	}
	s := newSolver(a, lay, weights, r)
	s.labeled = true // domains that only count as such may cross the layout's
	c, ok := s.best()
	return max(c.cost, 0), ok
}

// parts returns the questions to ask of a layout: the ask itself or, if the layout cuts the required level's domains,
// one for each of these with all other nodes barred. Domains without room for all members are left out. A part is as
// large as the fleet, so they are made one at a time.
func (a *ask) parts(ls *layouts, lay *layout) iter.Seq[*ask] {
	whole := ls.holding(a.rules.required)
	return func(yield func(*ask) bool) {
		if a.rules.required < 0 || whole == lay {
			yield(a)
			return
		}
		at := whole.position(a.rules.required)
		for _, u := range whole.vertices {
			nodes := whole.nodes[u.first:u.last]
			if u.level == at && a.runsIn(nodes) && a.mayHold(nodes) && !yield(a.within(nodes)) {
				return
			}
		}
	}
}

// mayHold reports whether the nodes have room for the members of each kind, if it were alone.
func (a *ask) mayHold(nodes []int) bool {
	return !slices.ContainsFunc(a.kinds, func(k kind) bool {
		missing := len(k.ranks)
		for _, node := range nodes {
			if !k.barred(node) && missing > 0 {
				missing -= k.room(a.ledger.Free[node])
			}
		}
		return missing > 0
	})
}

// runsIn reports whether all running members are on the nodes.
func (a *ask) runsIn(nodes []int) bool {
	found := 0
	for _, n := range nodes {
		if a.placedOn[n] > 0 {
			found++
		}
	}
	return found == len(a.placedOn)
}

// within returns the ask restricted to the nodes.
func (a *ask) within(nodes []int) *ask {
	const elsewhere = "outside the domain"
	part := *a
	part.rules.required = -1
	part.kinds = make([]kind, len(a.kinds))
	inside := make([]bool, a.ledger.Tree.Len())
	for _, n := range nodes {
		inside[n] = true
	}
	for i, k := range a.kinds {
		barred := make([]string, len(inside))
		for n := range barred {
			switch {
			case k.barred(n):
				barred[n] = k.shape.Barred[n]
			case !inside[n]:
				barred[n] = elsewhere
			}
		}
		part.kinds[i] = kind{Shape{k.shape.Demand, barred}, k.ranks}
	}
	return &part
}
