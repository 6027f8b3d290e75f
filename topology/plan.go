package topology

import "slices"

// plan is a way to place an ask's members, and a proven lower bound of the cost of any way.
type plan struct {
	ask   *ask
	nodes []int
	bound int64
	least []int
}

// plan decides: on the one layout of the tree, or on one of two (see crossed), or for many kinds by packing. It reports
// false if the members do not fit.
func (a *ask) plan() (plan, bool, error) {
	if c := a.census(); c != nil {
		if p, ok := c.onOneNode(a); ok {
			return p, true, nil
		}
	}
	ls := a.ledger.Tree.layout()
	if !a.exact() {
		return a.packed()
	}
	if ls.crossed() {
		return a.crossed(ls)
	}
	s := newSolver(a, ls.first(), a.weights(), a.rules)
	if s.roughly {
		return a.roughly(s)
	}
	p, ok := s.plan()
	return p, ok, nil
}

// plan returns the best plan on one layout.
func (s *solver) plan() (plan, bool) {
	c, ok := s.best()
	if !ok {
		return plan{}, false
	}
	return plan{nodes: s.ranked(s.trace(c.v)), bound: c.cost, least: s.least()}, true
}

// roughly decides when no exact plan keeps the spares: the best plan without them if it happens to keep them, or the
// solver's, which may miss a better one. The bound is the cost without spares.
func (a *ask) roughly(s *solver) (plan, bool, error) {
	r := a.rules
	r.spares = -1
	free := newSolver(a, s.lay, a.weights(), r)
	p, ok := free.plan()
	if !ok || free.spared(p.nodes) {
		return p, ok, nil
	}
	bound := p.bound
	p, ok = s.plan()
	p.bound = bound
	return p, ok, nil
}

// fits reports whether there is a plan, without making one where that can be told from less.
func (a *ask) fits() (bool, error) {
	ls := a.ledger.Tree.layout()
	if !a.exact() || ls.crossed() || a.rules.spares >= 0 {
		_, ok, err := a.plan()
		return ok, err
	}
	if g := a.census(); g != nil {
		return g.fits(), nil
	}
	s := newSolver(a, ls.first(), a.weights(), a.rules)
	for v := range s.scope() {
		if s.roomy(v) {
			return true, nil
		}
	}
	return false, nil
}

// census is what was counted before about the question, nil if nothing was.
func (a *ask) census() *census { return a.censusIn(a.ledger) }

// censusIn is that of another ledger of the same tree.
func (a *ask) censusIn(l Ledger) *census {
	if n := l.noted(); n != nil && a.plain() {
		return n.census(a)
	}
	return nil
}

// cost returns what a placement uses at each level and what it costs in all.
func (a *ask) cost(p plan, weights []int64) ([]Use, int64) {
	groups := a.ledger.Tree.layout().groups
	levels, total := make([]Use, len(groups)), int64(0)
	at := make([]int32, len(p.nodes))
	for l, group := range groups {
		for i, node := range p.nodes {
			at[i] = group[node]
		}
		used := distinct(at)
		levels[l] = Use{
			Domains: used, Least: min(p.least[l], used), Cost: weights[l] * a.gang.Communication.edges(at),
		}
		total += levels[l].Cost
	}
	return levels, total
}

// distinct is how many places there are.
func distinct(at []int32) int {
	const few = 16
	if len(at) > few {
		used := make(map[int32]struct{})
		for i, place := range at {
			if i == 0 || place != at[i-1] {
				used[place] = struct{}{}
			}
		}
		return len(used)
	}
	n := 0
	for i, place := range at {
		if !slices.Contains(at[:i], place) {
			n++
		}
	}
	return n
}
