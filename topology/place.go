package topology

import (
	"cmp"
	"iter"
	"slices"
)

// Place finds nodes for the members of the gang, or the reasons why there are none. Nothing is changed; a placement
// takes effect when the caller subtracts it from the ledger. An error is an *InputError: the question is wrong, and
// waiting would not help.
func Place(l Ledger, g Gang) (Placement, *Shortfall, error) {
	r, err := check(l, g)
	if err != nil {
		return Placement{}, nil, err
	}
	a := newAsk(l, g, r)
	if misplaced := a.misplaced(); misplaced != nil {
		return Placement{}, misplaced, nil
	}
	placed, err := a.planLargest()
	if err != nil {
		return Placement{}, nil, err
	}
	if placed == nil {
		return Placement{}, a.explain(), nil
	}
	return placed.answer(), nil, nil
}

// Try is Place without the reasons, which take longer than the search: it reports whether there are nodes. It makes no
// plan where counts suffice for that.
func Try(l Ledger, g Gang) (p Placement, fits bool, err error) {
	r, err := check(l, g)
	if err != nil {
		return Placement{}, false, err
	}
	a := newAsk(l, g, r)
	if a.misplaced() != nil {
		return Placement{}, false, nil
	}
	if fits, err = a.withFirst(g.least()).fits(); err != nil || !fits {
		return Placement{}, false, err
	}
	placed, err := a.planLargest()
	if err != nil || placed == nil {
		return Placement{}, false, err
	}
	return placed.answer(), true, nil
}

// planLargest plans as many members as fit; nil if not even the fewest do.
func (a *ask) planLargest() (*plan, error) {
	counts := slices.Collect(a.gang.counts())
	placed, err := a.planFirst(counts[len(counts)-1])
	if err != nil {
		return nil, err
	}
	if placed == nil {
		placed = a.planLargestOf(counts[:len(counts)-1])
	}
	return placed, nil
}

// answer turns the plan into a Placement. If its cost exceeds the proven bound, members of one kind first swap nodes
// (see improve).
func (p *plan) answer() Placement {
	a, weights := p.ask, p.ask.weights()
	levels, cost := a.cost(*p, weights)
	if cost > p.bound && !a.gang.boxed() { // the ranks of a box follow its axes
		a.improve(p.nodes, weights)
		p.stretches = nil
		levels, cost = a.cost(*p, weights)
	}
	lay := a.ledger.Tree.layout().first()
	return Placement{
		Gang:   a.gang.Name,
		Nodes:  p.nodes,
		Within: lay.domain(lay.around(p.nodes)),
		Levels: levels,
		Cost:   cost,
		Bound:  p.bound,
	}
}

// counts yields how many first members an elastic gang may have, ascending: all of them for other gangs. Equal segments
// are taken whole.
func (g Gang) counts() iter.Seq[int] {
	return func(yield func(int) bool) {
		for n := cmp.Or(g.Min, len(g.Members)); n <= len(g.Members); n++ {
			if g.whole(n) && !yield(n) {
				return
			}
		}
	}
}

// least is the smallest of counts, 0 if there is none.
func (g Gang) least() int {
	for n := range g.counts() {
		return n
	}
	return 0
}

// whole reports whether segments that have to be equal are equal if the gang has its first n members.
func (g Gang) whole(n int) bool {
	if g.Segment.Size == 0 || !g.Segment.Equal {
		return true
	}
	g.Members = g.Members[:n]
	return len(mainKind(g).ranks)%g.Segment.Size == 0
}

// withFirst returns the ask for the first n ranks of the gang alone.
func (a *ask) withFirst(n int) *ask {
	if n == len(a.gang.Members) {
		return a
	}
	fewer := a.gang
	fewer.Members = a.gang.Members[:n]
	return newAsk(a.ledger, fewer, a.rules)
}

// planFirst plans the first n ranks; nil if they do not fit.
func (a *ask) planFirst(n int) (*plan, error) {
	b := a.withFirst(n)
	p, ok, err := b.plan()
	if !ok || err != nil {
		return nil, err
	}
	p.ask = b
	return &p, nil
}

// planLargestOf plans the largest of the counts that fits; nil if none does. Fewer members fit wherever more do, so the
// search is binary: of 4 to 9 members on 7 nodes it tries 6, 8 and 7 (ExamplePlace_elastic).
func (a *ask) planLargestOf(counts []int) *plan {
	var best *plan
	for low, high := 0, len(counts)-1; low <= high; {
		middle := low + (high-low)/2
		// A wrong question has failed for the whole gang already, which was planned first.
		if p, err := a.planFirst(counts[middle]); p != nil && err == nil {
			best = p
			low = middle + 1
		} else {
			high = middle - 1
		}
	}
	return best
}
