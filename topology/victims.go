package topology

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// gauge holds the number of members that a kind lacks. The victims suffice only if their worths cover it.
type gauge struct {
	kind    int
	lacking int64
	// fixed is set if worths are relative to the present state only, so that chosen ones count by them.
	fixed bool
	// byPrice and byWorth are the victims that are worth something, by cost per worth and by worth.
	byPrice, byWorth []int
}

// appraise computes the victims' worths, drops those of no use and sorts the others.
func (g *candidateDomain) appraise() {
	var useful []victim
	for _, w := range g.victims {
		gains := len(g.tallies) > 1 // a place for two kinds together may result where neither alone gains one
		w.worth = make([]int64, len(g.tallies))
		for k := range w.worth {
			worth, gain := g.worth(k, w)
			w.worth[k] = worth
			gains = gains || worth > 0 || gain > 0 && !g.countable()
		}
		if gains {
			useful = append(useful, w)
		}
	}
	g.victims = useful
	for k := range g.tallies {
		if c := &g.low.counts[k]; c.lacking() > 0 {
			q := gauge{kind: k, lacking: c.lacking(), fixed: c.size > 1}
			for i := range g.victims {
				g.victims[i].worth[k] = min(g.victims[i].worth[k], q.lacking)
			}
			g.gauges = append(g.gauges, q)
		}
	}
	g.order()
	g.cheapest = make([]int64, len(g.victims)+1)
	g.cheapest[len(g.victims)] = knapsack.Never
	for i, w := range slices.Backward(g.victims) {
		g.cheapest[i] = min(g.cheapest[i+1], w.cost)
	}
}

// worth returns a kind's largest gain by a victim's departure in members, and the number of nodes with that room. In a
// domain of a level whose rule makes units of members it cannot be more than that domain gains if all leave; there may
// be members there already that wait for a unit to become full.
func (g *candidateDomain) worth(k int, w victim) (worth, gain int64) {
	low, high := &g.low.counts[k], &g.high.counts[k]
	level := max(low.segment, low.spread)
	home, here := -1, int64(0)
	settle := func() {
		if home >= 0 && here > 0 {
			factor := int64(1)
			if low.vertices[home].level == low.segment {
				factor = low.size
			}
			worth += min((high.units(home)-low.units(home))*factor, here+low.raw[home]%factor)
		}
	}
	for _, at := range w.grants {
		x := g.lay.leaves[g.nodes[at.node]] - g.v
		gained := high.raw[x] - low.raw[x]
		for x > 0 && low.vertices[x].level != level {
			x = low.vertices[x].parent - g.v
		}
		if x != home {
			settle()
			home, here = x, 0
		}
		here += gained
		gain += gained
	}
	settle()
	return worth, gain
}

// order sorts the victims by cost per worth to the kind that needs most, and fills the gauges.
func (g *candidateDomain) order() {
	g.sortGauges()
	var first *gauge
	most := int64(-1)
	for i := range g.gauges {
		if cost := g.atLeast(&g.gauges[i], 0); cost > most {
			first, most = &g.gauges[i], cost
		}
	}
	slices.SortStableFunc(g.victims, func(a, b victim) int {
		order := 0
		if first != nil {
			order = comparePrices(a, b, first.kind)
		}
		return cmp.Or(order, cmp.Compare(a.cost, b.cost), cmp.Compare(a.gang, b.gang))
	})
	g.sortGauges()
}

func (g *candidateDomain) sortGauges() {
	for j := range g.gauges {
		q := &g.gauges[j]
		q.byPrice = q.byPrice[:0]
		for i, w := range g.victims {
			if w.worth[q.kind] > 0 {
				q.byPrice = append(q.byPrice, i)
			}
		}
		q.byWorth = slices.Clone(q.byPrice)
		slices.SortStableFunc(
			q.byPrice,
			func(a, b int) int { return comparePrices(g.victims[a], g.victims[b], q.kind) },
		)
		slices.SortStableFunc(q.byWorth, func(a, b int) int {
			return cmp.Compare(g.victims[b].worth[q.kind], g.victims[a].worth[q.kind])
		})
	}
}

// comparePrices compares two victims by cost per worth; those worth nothing are last. Of equal ones the larger is
// first.
func comparePrices(a, b victim, kind int) int {
	x, y := a.worth[kind], b.worth[kind]
	if x == 0 || y == 0 {
		return cmp.Compare(y, x)
	}
	aHigh, aLow := bits.Mul64(uint64(a.cost), uint64(y))
	bHigh, bLow := bits.Mul64(uint64(b.cost), uint64(x))
	return cmp.Or(cmp.Compare(aHigh, bHigh), cmp.Compare(aLow, bLow), cmp.Compare(y, x))
}

// missing returns the worth that the victims still to be chosen need.
func (g *candidateDomain) missing(q *gauge) int64 {
	if !q.fixed {
		return g.low.counts[q.kind].lacking()
	}
	missing := q.lacking
	for _, i := range g.path {
		missing -= g.victims[i].worth[q.kind]
	}
	return missing
}

// atLeast returns a lower bound of the cost of the missing members if victims[:from] are decided: as if gangs could
// leave in part.
func (g *candidateDomain) atLeast(q *gauge, from int) int64 {
	missing, cost := g.missing(q), int64(0)
	for _, i := range q.byPrice {
		if missing <= 0 {
			break
		}
		if i < from {
			continue
		}
		w := g.victims[i]
		worth := w.worth[q.kind]
		if worth >= missing {
			high, low := bits.Mul64(uint64(w.cost), uint64(missing))
			part, rest := bits.Div64(high, low, uint64(worth))
			return addCosts(cost, int64(part+min(rest, 1)))
		}
		missing -= worth
		cost = addCosts(cost, w.cost)
	}
	if missing > 0 {
		return knapsack.Never
	}
	return cost
}

// lowerBound returns a lower bound of the cost of any set that agrees with the decisions on victims[:from]; at least
// one more must leave.
func (g *candidateDomain) lowerBound(from int) int64 {
	more := g.cheapest[from]
	for i := range g.gauges {
		more = max(more, g.atLeast(&g.gauges[i], from))
	}
	if more == knapsack.Never {
		return knapsack.Never
	}
	return addCosts(g.cost, more)
}

// fewest returns a lower bound of the number of gangs that leave in all.
func (g *candidateDomain) fewest(from int) int {
	fewest := 1
	for i := range g.gauges {
		q := &g.gauges[i]
		n, missing := 0, g.missing(q)
		for _, i := range q.byWorth {
			if missing <= 0 {
				break
			}
			if i >= from {
				missing -= g.victims[i].worth[q.kind]
				n++
			}
		}
		fewest = max(fewest, n)
	}
	return len(g.path) + fewest
}

// search decides about victims[from] and all after it. The gang does not fit yet, and would if all of them left.
// Leaving is tried first, since the victims with the least cost per worth precede the others. Branches not explored for
// lack of effort lower the bound instead.
func (g *candidateDomain) search(from int) {
	bound := g.lowerBound(from)
	best := g.best
	if best.compare(g.victimSearch.best) > 0 {
		best = g.victimSearch.best
	}
	if best.found && bound >= best.cost {
		if bound > best.cost || g.effort.ties <= 0 || g.fewest(from) > len(best.victims) {
			return
		}
		g.effort.ties--
	}
	if bound == knapsack.Never {
		return
	}
	if g.effort.sets--; g.spent() {
		g.bound = min(g.bound, bound)
		return
	}
	g.take(from)
	if g.fits(&g.low) {
		g.offer()
	} else {
		g.search(from + 1)
	}
	g.untake()
	g.shift(&g.high, from, -1)
	if g.fits(&g.high) {
		g.search(from + 1)
	}
	g.shift(&g.high, from, 1)
}

func (g *candidateDomain) take(i int) {
	g.shift(&g.low, i, 1)
	g.push(i)
}

// push adds a victim to the path. Costs are stacked: one that has reached the greatest cannot be subtracted from.
func (g *candidateDomain) push(i int) {
	g.path = append(g.path, i)
	g.costs = append(g.costs, g.cost)
	g.cost = addCosts(g.cost, g.victims[i].cost)
	g.held += g.victims[i].held
}

func (g *candidateDomain) untake() {
	last := len(g.path) - 1
	g.shift(&g.low, g.path[last], -1)
	g.held -= g.victims[g.path[last]].held
	g.cost = g.costs[last]
	g.path, g.costs = g.path[:last], g.costs[:last]
}

// offer records the chosen victims if they are the best of the candidate domain so far.
func (g *candidateDomain) offer() {
	c := choice{found: true, cost: g.cost, held: g.held}
	for _, i := range g.path {
		c.victims = append(c.victims, g.victims[i].gang)
	}
	slices.Sort(c.victims)
	order := c.compare(g.best)
	if order == 0 && !slices.Equal(c.victims, g.best.victims) && g.effort.placements > 0 {
		order = cmp.Compare(g.placementCost(&c), g.placementCost(&g.best))
	}
	if order < 0 || order == 0 && slices.Compare(c.victims, g.best.victims) < 0 {
		g.best = c
	}
}

// placementCost returns the cost of the gang in the candidate domain when these victims have left.
func (g *candidateDomain) placementCost(c *choice) int64 {
	if c.placed {
		return c.placement
	}
	g.effort.placements -= 1 + len(g.nodes)/nodesPerPlacement
	path := slices.Clone(g.path)
	g.retake(nil)
	for i, w := range g.victims {
		if slices.Contains(c.victims, w.gang) {
			g.take(i)
		}
	}
	a, cost := g.asked(&g.low), int64(knapsack.Never)
	if p, ok, err := a.plan(); ok && err == nil {
		_, cost = a.cost(p, a.weights())
	}
	g.retake(path)
	c.placed, c.placement = true, cost
	return cost
}

// retake chooses other victims.
func (g *candidateDomain) retake(path []int) {
	for len(g.path) > 0 {
		g.untake()
	}
	for _, i := range path {
		g.take(i)
	}
}

// greedy finds a first set: victims in order until the gang fits or, if it has segments, segment by segment.
func (g *candidateDomain) greedy() {
	g.fill()
	g.trim()
	if g.low.counts[0].size > 1 {
		g.takeBySegment()
		g.fill()
		g.trim()
	}
}

// fill takes victims in order until the gang fits, in growing steps where a test is dear.
func (g *candidateDomain) fill() {
	taken := make([]bool, len(g.victims))
	for _, i := range g.path {
		taken[i] = true
	}
	wait, short := 0, len(g.path)
	for i := range g.victims {
		if wait <= 0 && g.low.enough() {
			if g.fits(&g.low) {
				g.shorten(short)
				return
			}
			wait, short = len(g.path)/2, len(g.path)
		}
		if !taken[i] {
			g.take(i)
			wait--
		}
	}
}

// shorten returns from a path that suffices to the first part of it that does, where so many victims are too many to be
// tried one by one (see trim): the last step of fill may have been a third of the path. The first short victims do not
// suffice.
func (g *candidateDomain) shorten(short int) {
	if g.countable() || len(g.path)*len(g.nodes) <= g.effort.nodes {
		return
	}
	for short+1 < len(g.path) && g.effort.nodes > 0 {
		rest := slices.Clone(g.path[(short+len(g.path))/2:])
		for range rest {
			g.untake()
		}
		if g.fits(&g.low) {
			continue
		}
		short = len(g.path)
		for _, i := range rest {
			g.take(i)
		}
	}
}

// trim removes the chosen victims that are not needed, the dearest first, and offers the others.
func (g *candidateDomain) trim() {
	dearest := slices.Clone(g.path)
	slices.SortStableFunc(dearest, func(a, b int) int { return cmp.Compare(g.victims[b].cost, g.victims[a].cost) })
	stays := make([]bool, len(g.victims))
	for _, i := range dearest {
		if g.effort.nodes <= 0 {
			break
		}
		g.shift(&g.low, i, -1)
		if stays[i] = g.fits(&g.low); !stays[i] {
			g.shift(&g.low, i, 1)
		}
	}
	path := g.path
	g.path, g.costs, g.cost, g.held = nil, nil, 0, 0
	for _, i := range path {
		if !stays[i] {
			g.push(i)
		}
	}
	g.offer()
	g.retake(nil)
}
