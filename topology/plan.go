package topology

import "slices"

// plan is a way to place an ask's members, and a proven lower bound of the cost of any way.
type plan struct {
	ask   *ask
	nodes []int
	// stretches have the nodes, if ranks ascend in the layout's order; else nil.
	stretches []stretch
	bound     int64
	// least[l] is the fewest domains of level l that could hold the gang.
	least []int
	// alone is set if each member is known to have a node of its own.
	alone bool
}

// plan decides: on the one layout of the tree, or on one of two (see crossed), or for many kinds by packing. It reports
// false if the members do not fit.
func (a *ask) plan() (plan, bool, error) {
	if a.gang.boxed() {
		return a.boxPlan()
	}
	if t := a.table(); t != nil {
		if p, ok := t.onOneNode(a); ok {
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
	if s.inexact {
		return a.planWithSpares(s)
	}
	p, ok := s.plan()
	return p, ok, nil
}

// plan returns the best plan on one layout.
func (s *solver) plan() (plan, bool) {
	var p plan
	c, ok := s.best()
	if ok {
		t := s.trace(c.v)
		p = plan{
			nodes: s.ranked(t),
			bound: c.cost,
			least: s.fewestDomains(),
			alone: s.whole && len(s.placedOn) == 0,
		}
		if len(s.kinds) == 1 && len(s.placedOn) == 0 && t.short < 0 {
			p.stretches = t.stretches
		}
	}
	if s.table != nil {
		s.table.retain(s.classes)
	}
	return p, ok
}

// planWithSpares plans where the solver's choice of spares may miss the best plan. It returns the best plan without the
// rule if that leaves the spares unused anyway, else the solver's. The bound is the cost without spares.
func (a *ask) planWithSpares(s *solver) (plan, bool, error) {
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

// fits reports whether there is a plan, without making one where counts suffice.
func (a *ask) fits() (bool, error) {
	if a.gang.boxed() {
		found := a.boxes()
		return len(found) > 0 && found[0].Fits(), nil
	}
	ls := a.ledger.Tree.layout()
	if !a.exact() || ls.crossed() || a.rules.spares >= 0 {
		_, ok, err := a.plan()
		return ok, err
	}
	if t := a.table(); t != nil {
		return t.fits(), nil
	}
	s := newSolver(a, ls.first(), a.weights(), a.rules)
	for v := range s.scope() {
		if s.roomy(v) {
			return true, nil
		}
	}
	return false, nil
}

// table returns the earlier counts for the question, nil if there are none.
func (a *ask) table() *subtreeTable { return a.tableIn(a.ledger) }

// tableIn is that of another ledger of the same tree.
func (a *ask) tableIn(l Ledger) *subtreeTable {
	if n := l.noted(); n != nil && a.plain() {
		return n.table(a)
	}
	return nil
}

// cost returns the domains that a placement uses at each level, and its total cost.
func (a *ask) cost(p plan, weights []int64) ([]Use, int64) {
	ls, pattern := a.ledger.Tree.layout(), a.gang.Communication
	levels, total := make([]Use, len(ls.groups)), int64(0)
	inner := len(ls.groups) - 1
	var runs []run
	for l, group := range slices.Backward(ls.groups) {
		var used int
		var crossing int64
		switch {
		case p.alone && l == inner: // a run for each of 100,000 nodes need not be made
			used, crossing = len(p.nodes), pattern.all(len(p.nodes))
		case p.stretches != nil && pattern != AllToAll && !ls.crossed(): // a run for each group
			used = ls.countIn(l, p.stretches)
			crossing = pattern.all(used)
		default:
			if len(runs) == 0 || ls.crossed() { // then an inner domain may be in several outer ones
				runs = runsOf(runs[:0], p.nodes, group)
			} else {
				runs = merged(runs[:0], runs, group)
			}
			used, crossing = distinct(runs, group, ls.numbers), pattern.edges(runs, group)
		}
		levels[l] = Use{Domains: used, Least: min(p.least[l], used), Cost: weights[l] * crossing}
		total += levels[l].Cost
	}
	return levels, total
}
