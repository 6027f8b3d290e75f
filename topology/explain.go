package topology

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// nearest is the number of domains of the required level that a shortfall lists.
const nearest = 3

// explain returns the reasons why the members do not fit.
func (a *ask) explain() *Shortfall {
	if n := a.gang.least(); n < len(a.gang.Members) {
		fewer := a.gang
		fewer.Members = a.gang.Members[:n]
		a = newAsk(a.ledger, fewer, a.rules)
	}
	s := &Shortfall{Gang: a.gang.Name, Members: len(a.gang.Members), TPU: a.gang.TPU}
	if n := a.ledger.noted(); n != nil && !n.explains {
		return s // see Book
	}
	plain := *a // a book counts those that fit
	plain.ledger.notes = nil
	a = &plain
	levels := a.ledger.Tree.levels
	if a.rules.required >= 0 {
		s.Level = nodeLevel()
		if a.rules.required < len(levels) {
			s.Level = levels[a.rules.required]
		}
	}
	if a.gang.boxed() {
		a.explainBox(s)
		a.tally(s, a.kinds[0])
		s.Never, s.Unoffered = a.never(), a.unoffered()
		return s
	}
	h := newHolder(a)
	best, lacking := h.rank(s), missing{}
	if best >= 0 {
		_, lacking = h.holds(best)
		h.limits(s, best)
	}
	if ranks := a.kinds[lacking.kind].ranks; len(a.kinds) > 1 && best >= 0 && lacking.from < len(ranks) {
		s.Lacking = a.gang.Members[ranks[lacking.from]].Name
	}
	a.tally(s, a.kinds[lacking.kind])
	s.Never = a.never()
	s.Unoffered = a.unoffered()
	return s
}

// unoffered returns the resources that members need and no node has.
func (a *ask) unoffered() []string {
	var names []string
	for i, name := range a.gang.Resources {
		needs := slices.ContainsFunc(a.gang.Shapes, func(s Shape) bool { return amount(s.Demand, i) > 0 })
		if needs && a.ledger.Total != nil &&
			!slices.ContainsFunc(a.ledger.Total, func(c Capacity) bool { return amount(c, i) > 0 }) {
			names = append(names, name)
		}
	}
	return names
}

// amount is the i-th number; zero if it is not there.
func amount(c Capacity, i int) int64 {
	if i < len(c) {
		return c[i]
	}
	return 0
}

// never reports whether an empty fleet would be too small as well.
func (a *ask) never() bool {
	if a.ledger.Total == nil || len(a.placedOn) > 0 {
		return false
	}
	empty := *a
	empty.ledger.Free = a.ledger.Total
	ok, err := empty.fits()
	return !ok && err == nil
}

// misplaced returns a shortfall if a running member is on a node that the rules do not allow.
func (a *ask) misplaced() *Shortfall {
	if len(a.placedOn) == 0 {
		return nil
	}
	groups := a.ledger.Tree.layout().groups
	s := &Shortfall{Gang: a.gang.Name, Members: len(a.gang.Members)}
	home := int32(-1)
	for _, m := range a.gang.Members {
		if !m.Placed {
			continue
		}
		if a.rules.required >= 0 {
			if at := groups[a.rules.required][m.Node]; home < 0 {
				home = at
			} else if at != home {
				s.Stray = m.Name
				return s
			}
		}
		if a.unlabelled(m.Node) {
			s.Stray = m.Name
			return s
		}
	}
	if stray := a.torn(groups); stray >= 0 {
		s.Stray = a.gang.Members[stray].Name
		return s
	}
	return nil
}

// torn returns a running member that is not with the others of its segment, -1 if there is none.
func (a *ask) torn(groups [][]int32) int {
	if a.rules.segment < 0 {
		return -1
	}
	for segment := range slices.Chunk(mainKind(a.gang).ranks, a.segments.size) {
		home := int32(-1)
		for _, rank := range segment {
			if m := a.gang.Members[rank]; m.Placed {
				if at := groups[a.rules.segment][m.Node]; home < 0 {
					home = at
				} else if at != home {
					return rank
				}
			}
		}
	}
	return -1
}

// tally counts the nodes by the obstacle to a member of the kind.
func (a *ask) tally(s *Shortfall, k kind) {
	rules := make(map[string]int)
	for _, node := range a.ledger.Tree.layout().first().nodes {
		switch {
		case a.unlabelled(node):
			s.Outside++
		case k.barred(node):
			rules[k.shape.Barred[node]]++
		case k.room(a.ledger.Free[node]) == 0:
			s.Full++
		default:
			s.Open++
		}
	}
	for rule, nodes := range rules {
		s.Barred = append(s.Barred, Rule{rule, nodes})
	}
	slices.SortFunc(s.Barred, func(x, y Rule) int {
		return cmp.Or(cmp.Compare(y.Nodes, x.Nodes), strings.Compare(x.Rule, y.Rule))
	})
}

// limits counts the members that the domain would hold without each of the gang's own rules.
func (h *holder) limits(s *Shortfall, v int) {
	g := h.gang
	holds, _ := h.holds(v)
	for _, without := range []struct {
		rule string
		ask  func(g *Gang, r *rules)
	}{
		{fmt.Sprintf("segments of %d in one %s", g.Segment.Size, g.Segment.Level), func(g *Gang, r *rules) {
			g.Segment, r.segment = Segment{}, -1
		}},
		{fmt.Sprintf("the limit of %d per %s", g.Spread.Max, g.Spread.Level), func(g *Gang, r *rules) {
			g.Spread, r.spread = Spread{}, -1
		}},
		{fmt.Sprintf("%s per %s", quantity(g.Spares.Nodes, "spare"), g.Spares.Level), func(g *Gang, r *rules) {
			g.Spares, r.spares = Spares{}, -1
		}},
		{fmt.Sprintf("the limit of %d per node", g.PerNode), func(g *Gang, _ *rules) { g.PerNode = 0 }},
	} {
		loose, r := h.gang, h.rules
		without.ask(&loose, &r)
		if r == h.rules && loose.PerNode == h.gang.PerNode {
			continue
		}
		if more, _ := newHolder(newAsk(h.ledger, loose, r)).holds(v); more > holds {
			s.Limits = append(s.Limits, Limit{without.rule, more - holds})
		}
	}
}
