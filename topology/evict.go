package topology

import (
	"fmt"
	"math"
	"slices"
)

// Running is a running gang: its holdings, the cost of its eviction and its expected end.
type Running struct {
	Name  string
	Holds []Held
	// Cost is the caller's loss with it, in any unit that is the same for all; it is not negative.
	Cost int64
	// End is the instant at which it is expected to end, in any unit that is the same for all; EndUnknown if unknown.
	// Only Reserve and Admit read it.
	End int64
}

// EndUnknown is the End of a gang without a known end. Reserve takes such a gang to stay for ever.
const EndUnknown = math.MaxInt64

// Held is the room that a running gang takes on a node; Free no longer holds it. A gang may hold several things on one
// node.
type Held struct {
	Node   int
	Demand Capacity
}

// Eviction names the gangs that have to leave, and the gang's placement then.
type Eviction struct {
	// Victims are indexes into the running gangs, ascending; none if there is room already.
	Victims []int
	// Cost is the sum of the victims' costs, Bound a proven lower bound of the cost of any set of victims.
	Cost, Bound int64
	// Placement is the gang's when the victims have left.
	Placement Placement
}

// Optimal reports that no victims cost less.
func (e Eviction) Optimal() bool { return e.Cost == e.Bound }

// Evict finds the cheapest set of whole running gangs whose departure makes room for the gang: for its minimum if it is
// elastic. Of equal sets it prefers that with fewest victims, then that which holds least in number, then the one whose
// placement costs least, then the first domain and the lowest indexes. Only the cost is proven (see Eviction.Bound); of
// very many equal sets not all are evaluated.
//
// The shortfall is that of the ledger after all running gangs have left. The gang itself must not be among them.
func Evict(l Ledger, g Gang, running []Running) (Eviction, *Shortfall, error) {
	a, err := newLeast(l, g)
	if err != nil {
		return Eviction{}, nil, err
	}
	if err = checkRunning(l, running); err != nil {
		return Eviction{}, nil, err
	}
	fits := a.misplaced() != nil // then no departure helps, and Place reports that
	if !fits {
		if fits, err = a.fits(); err != nil {
			return Eviction{}, nil, err
		}
	}
	if fits {
		p, short, err := Place(l, g)
		return Eviction{Placement: p}, short, err
	}
	h := newVictimSearch(a, running)
	if g.boxed() {
		h.searchBoxes()
	} else {
		h.run()
	}
	allVictims := h.allVictims()
	if h.best.found {
		p, short, err := Place(l.freed(running, h.best.victims), g)
		if short == nil && err == nil {
			found := h.best
			if h.effort.nodes <= 0 { // not each of them was tried to stay
				found = h.needed(found, p)
			}
			return Eviction{
				Victims: found.victims, Cost: found.cost, Bound: min(h.bound, found.cost), Placement: p,
			}, nil, nil
		}
	}
	// The search found no set of victims that suffices. A fleet without any running gang shows the reason, unless the
	// gang is of several kinds: those are packed, which may fail after fewer departures and succeed after all of them.
	p, short, err := Place(l.freed(running, allVictims.victims), g)
	if short != nil || err != nil {
		return Eviction{}, short, err
	}
	needed := h.needed(allVictims, p)
	// The search compared no sets of victims that suffice, so no cost but zero is proven.
	return Eviction{Victims: needed.victims, Cost: needed.cost, Bound: 0, Placement: p}, nil, nil
}

// checkRunning returns the first fault of the running gangs.
func checkRunning(l Ledger, running []Running) error {
	for _, r := range running {
		fail := func(cause error, format string, args ...any) error {
			return &InputError{Of: "running gang " + r.Name, What: fmt.Sprintf(format, args...), Cause: cause}
		}
		if r.Cost < 0 {
			return fail(ErrNegative, "cost %d", r.Cost)
		}
		for _, h := range r.Holds {
			if l.Tree.Node(h.Node) == "" {
				return fail(ErrNode, "node %d", h.Node)
			}
			if at := negative(h.Demand); at >= 0 {
				return fail(ErrNegative, "demand %d on node %s", h.Demand[at], l.Tree.Node(h.Node))
			}
		}
	}
	return nil
}

// freed returns the ledger after the gangs with these indexes have left. Nothing of the first ledger is changed.
func (l Ledger) freed(running []Running, gone []int) Ledger {
	owned := make([]bool, len(l.Free))
	l.Free = slices.Clone(l.Free)
	for _, i := range gone {
		for _, h := range running[i].Holds {
			if !owned[h.Node] {
				owned[h.Node] = true
				l.Free[h.Node] = slices.Clone(l.Free[h.Node])
			}
			l.Free[h.Node] = l.Free[h.Node].plus(h.Demand)
		}
	}
	return l
}

// plus adds to a capacity that is not shared.
func (c Capacity) plus(demand Capacity) Capacity {
	sum := c
	for len(sum) < len(demand) {
		sum = append(sum, 0)
	}
	for r, d := range demand {
		sum[r] += d
	}
	return sum
}

// newLeast checks a question and returns it for the fewest members that would do.
func newLeast(l Ledger, g Gang) (*ask, error) {
	r, err := check(l, g)
	if err != nil {
		return nil, err
	}
	g.Members = g.Members[:g.least()]
	return newAsk(l, g, r), nil
}

// countable reports whether the members fit wherever there are places enough.
func (a *ask) countable() bool {
	return a.exact() && !a.gang.boxed() && len(a.kinds) == 1 && len(a.placedOn) == 0 && len(a.segments.short) == 0 &&
		a.rules.spares < 0 &&
		!a.ledger.Tree.layout().crossed()
}
