package topology

import (
	"cmp"
	"slices"

	"github.com/lockstep-project/lockstep/topology/knapsack"
)

// victimSearch looks for the victims that cost least, domain by domain. A candidate domain is a domain of the required
// level with the holdings of the running gangs there; sets of victims are explored candidate domain by candidate domain
// (see candidateDomain.search), the most promising candidate domain first, and a candidate domain whose bound is no
// better than the best set so far is skipped: branch and bound.
//
// A rack lacks two nodes. a holds two there and costs 30, b and c hold one each and cost 10 and 15. By cost for a node
// the order is b, a and c at 10, 15 and 15; b alone leaves one node lacking, which costs 15 at least, so the bound is
// 25. b and a cost 40, b and c 25: proven.
type victimSearch struct {
	*ask
	lay     *layout
	running []Running
	// holds are the holdings on each node, a gang's together.
	holds [][]holding
	// limits[kind][node] is the most members of a kind that the rules allow on the node.
	limits [][]int32
	// tallies count the members of each kind.
	tallies []tally
	// resources is the number of resources that any gang names.
	resources int
	best      choice
	bound     int64
	effort    effort
}

// holding is the room that a gang holds on a node.
type holding struct {
	gang   int
	demand Capacity
}

// choice is a set of victims.
type choice struct {
	found   bool
	victims []int
	cost    int64
	// held is the number of things that they hold.
	held int
	// placement is the cost of the gang's placement, once that was computed (see candidateDomain.placementCost).
	placed    bool
	placement int64
}

func (c choice) compare(d choice) int {
	switch {
	case !c.found && !d.found:
		return 0
	case !c.found:
		return 1
	case !d.found:
		return -1
	}
	return cmp.Or(cmp.Compare(c.cost, d.cost), cmp.Compare(len(c.victims), len(d.victims)), cmp.Compare(c.held, d.held))
}

// effort is the rest of a call's budget: sets to explore, of these those that can only be equal to the best; nodes to
// pass over in full tests; and placements to compare, those among many nodes counting as several.
type effort struct{ sets, ties, nodes, placements int }

// The whole effort of a call.
const (
	mostSets       = 20_000
	mostTies       = 500
	mostNodes      = 1 << 19
	mostPlacements = 64

	nodesPerPlacement = 256
)

func newVictimSearch(a *ask, running []Running) *victimSearch {
	h := &victimSearch{
		ask: a, lay: a.ledger.Tree.layout().holding(a.rules.required), running: running,
		holds: make([][]holding, a.ledger.Tree.Len()), bound: knapsack.Never,
		effort: effort{mostSets, mostTies, mostNodes, mostPlacements},
	}
	for i, r := range running {
		for _, held := range r.Holds {
			h.resources = max(h.resources, len(held.Demand))
			at := h.holds[held.Node]
			if last := len(at) - 1; last >= 0 && at[last].gang == i {
				at[last].demand = slices.Clone(at[last].demand).plus(held.Demand)
			} else {
				h.holds[held.Node] = append(at, holding{i, held.Demand})
			}
		}
	}
	for _, free := range a.ledger.Free {
		h.resources = max(h.resources, len(free))
	}
	h.countLimits()
	return h
}

// countLimits fills limits and tallies.
func (h *victimSearch) countLimits() {
	for _, k := range h.kinds {
		limits := make([]int32, h.ledger.Tree.Len())
		for _, node := range h.lay.nodes {
			limit := len(k.ranks)
			if h.gang.PerNode > 0 {
				limit = min(limit, h.gang.PerNode-h.placedOn[node])
			}
			if limit > 0 && !k.barred(node) && !h.unlabelled(node) {
				limits[node] = int32(limit)
			}
		}
		h.limits = append(h.limits, limits)
		h.tallies = append(h.tallies, tally{
			demand: k.shape.Demand, segment: noLevel, spread: noLevel, size: 1, target: int64(len(k.ranks)),
		})
	}
	if h.ledger.Tree.layout().crossed() || len(h.placedOn) > 0 {
		return // then only members are counted
	}
	main := &h.tallies[0]
	inside := h.lay.ruled(h.rules.segment) >= h.lay.position(h.level())
	if len(h.kinds) == 1 && h.rules.spread >= 0 && (h.rules.segment < 0 || inside) {
		main.spread, main.most = h.lay.ruled(h.rules.spread), int64(h.gang.Spread.Max)
	}
	if full := len(h.segments.full); full > 0 && inside {
		main.segment, main.size, main.target = h.lay.ruled(h.rules.segment), int64(h.segments.size), int64(full)
	} else if h.rules.segment >= 0 {
		main.spread = noLevel // it is about segments
	}
}

// level is the level of the tree whose domains are evaluated one by one: the required one or, if spares are counted in
// larger domains, theirs.
func (h *victimSearch) level() int {
	switch r := h.rules; {
	case r.required < 0 || r.spares < 0 || r.spares >= r.required:
		return r.required
	case h.ledger.Tree.layout().crossed():
		return -1
	default:
		return r.spares
	}
}

// run finds the best set of victims.
func (h *victimSearch) run() {
	var domains []*candidateDomain
	seen := make([]int, len(h.running))
	at := h.lay.position(h.level())
	for v, u := range h.lay.vertices {
		if u.level != at || !h.allowed(v) {
			continue
		}
		if g := newCandidateDomain(h, v, seen); g != nil {
			domains = append(domains, g)
		}
	}
	slices.SortStableFunc(domains, func(a, b *candidateDomain) int { return cmp.Compare(a.least, b.least) })
	for i, g := range domains {
		if h.best.found && (g.least > h.best.cost || g.least == h.best.cost && h.effort.ties <= 0) ||
			h.spent() && h.best.found {
			h.bound = min(h.bound, g.least)
			continue
		}
		if !g.certain() {
			h.bound = min(h.bound, g.least)
		}
		if g.fits(&g.high) {
			g.greedy()
			g.search(0)
			h.settle(g, domains[:i])
		}
	}
}

// allowed reports whether the vertex holds the running members, and those around it allow all others.
func (h *victimSearch) allowed(v int) bool {
	u := h.lay.vertices[v]
	for node := range h.placedOn {
		if leaf := h.lay.leaves[node]; leaf < v || leaf >= u.end {
			return false
		}
	}
	units := len(h.kinds[0].ranks)
	if h.rules.segment >= 0 {
		units = len(h.segments.full) + len(h.segments.running) + min(len(h.segments.short), 1)
	}
	return !h.countable() || h.lay.ruled(h.rules.spread) == noLevel ||
		h.lay.ruled(h.rules.spread) >= u.level || units <= h.gang.Spread.Max
}

func (h *victimSearch) spent() bool { return h.effort.sets <= 0 || h.effort.nodes <= 0 }

// settle retains the better of the best set so far and that of a candidate domain.
func (h *victimSearch) settle(g *candidateDomain, before []*candidateDomain) {
	order := g.best.compare(h.best)
	if order == 0 && g.best.found && h.effort.placements > 0 {
		last := before[slices.IndexFunc(before, func(b *candidateDomain) bool { return b.winner })]
		order = cmp.Or(cmp.Compare(g.placementCost(&g.best), last.placementCost(&last.best)), cmp.Compare(g.v, last.v))
	}
	if order < 0 {
		for _, b := range before {
			b.winner = false
		}
		h.best, g.winner = g.best, true
	}
}

// needed returns the victims that hold something on the nodes of the gang's placement: the others need not leave. With
// spares all of them leave, because spares are other nodes that have to stay free as well.
func (h *victimSearch) needed(c choice, p Placement) choice {
	if h.rules.spares >= 0 {
		return c
	}
	used := make([]bool, len(h.ledger.Free))
	for _, node := range p.Nodes {
		used[node] = true
	}
	var out choice
	for _, i := range c.victims {
		if slices.ContainsFunc(h.running[i].Holds, func(held Held) bool { return used[held.Node] }) {
			out.victims, out.cost = append(out.victims, i), addCosts(out.cost, h.running[i].Cost)
		}
	}
	return out
}

// allVictims returns the choice of all victims.
func (h *victimSearch) allVictims() choice {
	c := choice{found: true}
	for i, r := range h.running {
		c.victims = append(c.victims, i)
		c.cost = addCosts(c.cost, r.Cost)
	}
	return c
}

// addCosts adds without running over.
func addCosts(a, b int64) int64 {
	if a > knapsack.Never-1-b {
		return knapsack.Never - 1
	}
	return a + b
}
