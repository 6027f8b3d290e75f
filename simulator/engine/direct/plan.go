package direct

import (
	"math"
	"slices"

	"github.com/lockstep-project/lockstep/scheduler/contention"
	"github.com/lockstep-project/lockstep/topology"
)

// plan holds the free room of each node over time: now, when running jobs end by their limits, and beside planned ones.
type plan struct {
	limits

	now    int64
	ledger topology.Ledger
	// nodes are the steps of each node, the earliest first; the first step begins now.
	nodes [][]step
	// instants are those at which something may become free, ascending; the first is now.
	instants []int64
	// tried are the searches that were made, by question: another that runs as long finds no earlier instant.
	tried [][]search
	// earliests and within are scratch of bound.
	earliests, within []int64
	// from and to are the instants that ledger shows.
	from, to int64
	scratch  []topology.Capacity
}

// step is the free room of a node from an instant until the next step.
type step struct {
	at   int64
	free topology.Capacity
}

// search is the earliest instant that was found for a run time; math.MaxInt64 for none inside the window.
type search struct{ limit, at int64 }

// newPlan returns a plan that holds only the present.
func newPlan(snap *contention.Snapshot, of limits, questions int) *plan {
	p := &plan{
		limits: of, now: snap.Now, ledger: snap.Ledger, instants: []int64{snap.Now}, tried: make([][]search, questions),
		from: snap.Now, to: snap.Now + 1,
	}
	p.ledger.Free = slices.Clone(snap.Ledger.Free)
	return p
}

// expect adds the capacity that is free later, when running units end and nothing is planned.
func (p *plan) expect(snap *contention.Snapshot) {
	const usual = 8 // steps of a node
	n := len(snap.Ledger.Free)
	p.nodes, p.scratch = make([][]step, n), make([]topology.Capacity, n)
	steps := make([]step, usual*n)
	for node, free := range snap.Ledger.Free {
		p.nodes[node] = append(steps[usual*node:usual*node:usual*node+usual], step{snap.Now, free})
	}
	for _, x := range snap.Running.Expected(p.now, 0) {
		if at := p.endOf(x.Unit); at != math.MaxInt64 {
			for _, held := range x.Unit.Holds {
				p.change(held, at, math.MaxInt64, 1)
			}
			p.note(at)
		}
	}
}

// endOf returns when a unit ends by its limit, math.MaxInt64 if it has none. One that outlasts its limit is being
// ended.
func (p *plan) endOf(u *contention.Unit) int64 {
	switch u.End.Certainty {
	case contention.Certain, contention.Reported, contention.Predicted:
		return p.round(max(u.End.At, p.now+1))
	case contention.Never, contention.Unknown:
	}
	return math.MaxInt64
}

// round rounds an instant up to the resolution.
func (p *plan) round(at int64) int64 {
	if at > math.MaxInt64-p.resolution {
		return math.MaxInt64
	}
	since := at - p.now
	return p.now + (since+p.resolution-1)/p.resolution*p.resolution
}

// note adds an instant at which something may become free, if it is inside the window.
func (p *plan) note(at int64) {
	if at > p.now+p.window {
		return
	}
	if i, known := slices.BinarySearch(p.instants, at); !known {
		p.instants = slices.Insert(p.instants, i, at)
	}
}

// keep reserves a place from an instant until another.
func (p *plan) keep(holds []topology.Held, from, to int64) {
	to = p.round(to)
	for _, held := range holds {
		p.change(held, from, to, -1)
	}
	p.note(to)
	p.from = math.MinInt64
}

// change adds a demand, or takes it with sign -1, on a node between two instants.
func (p *plan) change(held topology.Held, from, to, sign int64) {
	first := p.split(held.Node, from)
	end := len(p.nodes[held.Node])
	if to != math.MaxInt64 {
		end = p.split(held.Node, to)
	}
	for i := first; i < end; i++ {
		s := &p.nodes[held.Node][i]
		s.free = slices.Clone(s.free)
		for r, amount := range held.Demand {
			if r < len(s.free) {
				s.free[r] += sign * amount
			}
		}
	}
}

// split has a step of a node begin at an instant, and returns its index.
func (p *plan) split(node int, at int64) int {
	steps := p.nodes[node]
	i, found := slices.BinarySearchFunc(steps, at, func(s step, at int64) int {
		switch {
		case s.at < at:
			return -1
		case s.at > at:
			return 1
		}
		return 0
	})
	if !found {
		p.nodes[node] = slices.Insert(steps, i, step{at, steps[i-1].free})
	}
	return i
}

// during returns a ledger of the capacity that is free throughout the time between two instants. It is valid until the
// next call.
func (p *plan) during(from, to int64) topology.Ledger {
	if p.from == from && p.to == to {
		return p.ledger
	}
	p.from, p.to = from, to
	for node, steps := range p.nodes {
		p.ledger.Free[node] = p.least(node, steps, from, to)
	}
	return p.ledger
}

// least returns the least that a node has free between two instants.
func (p *plan) least(node int, steps []step, from, to int64) topology.Capacity {
	i := len(steps) - 1
	for i > 0 && steps[i].at > from {
		i--
	}
	out := steps[i].free
	own := false
	for i++; i < len(steps) && steps[i].at < to; i++ {
		for r, amount := range steps[i].free {
			if amount >= out[r] {
				continue
			}
			if !own {
				p.scratch[node] = append(p.scratch[node][:0], out...)
				out, own = p.scratch[node], true
			}
			out[r] = amount
		}
	}
	return out
}

// holds reports whether all nodes of a ledger together have room for the members of a gang of one shape, without which
// no policy places it. That is quicker to know.
func (p *plan) holds(l topology.Ledger, e *spot) bool {
	if len(e.Ask.Gang.Shapes) != 1 {
		return true
	}
	need, demand := needed(e), e.Ask.Gang.Shapes[0].Demand
	for _, free := range l.Free {
		if need -= times(free, demand, need); need <= 0 {
			return true
		}
	}
	return false
}

// needed returns the number of members that have to start together.
func needed(e *spot) int64 { return int64(max(e.Ask.Needed, 1)) }

// times returns the number of times that a demand fits, at most so many.
func times(free, demand topology.Capacity, most int64) int64 {
	for r, want := range demand {
		if want > 0 && r < len(free) {
			most = min(most, max(free[r], 0)/want)
		}
	}
	return most
}

// lastFitting returns the index of the last entity whose question has room now, -1 if none has.
func (p *plan) lastFitting(snap *contention.Snapshot, among line) int {
	const unknown, fits, refused = 0, 1, 2
	known := make([]uint8, len(p.tried))
	last := none
	for i, e := range among {
		if known[e.asks] == unknown {
			known[e.asks] = refused
			l := p.during(p.now, p.now+1)
			if p.holds(l, e) && snap.Placer.Place(l, e.Ask).Refusal == nil {
				known[e.asks] = fits
			}
		}
		if known[e.asks] == fits {
			last = i
		}
	}
	return last
}

// earliest returns the first instant inside the window at which an entity has a place for its whole limit, and the
// place.
func (p *plan) earliest(snap *contention.Snapshot, e *spot) (int64, contention.Answer, bool) {
	limit := ending(0, e.RunTime)
	from := p.now
	for _, s := range p.tried[e.asks] {
		if s.limit <= limit {
			from = max(from, s.at)
		}
	}
	next := p.confined(snap, e)
	for {
		i, _ := slices.BinarySearch(p.instants, next.bound(from))
		if i == len(p.instants) {
			break
		}
		at := p.instants[i]
		l := p.during(at, ending(at, e.RunTime))
		if p.holds(l, e) {
			if a := snap.Placer.Place(l, e.Ask); a.Refusal == nil {
				p.tried[e.asks] = append(p.tried[e.asks], search{limit, at})
				return at, a, true
			}
		}
		from = at + 1
	}
	p.tried[e.asks] = append(p.tried[e.asks], search{limit, math.MaxInt64})
	return 0, contention.Answer{}, false
}

// confined is an entity whose gang starts when one of several sets of nodes has room.
type confined struct {
	in *plan
	e  *spot
	// sets are the sets, nil for all nodes. fewest is the number of nodes that the gang takes in one of them at least;
	// 0 if it is not known.
	sets   [][]int
	fewest int
}

// confined returns the sets of nodes that bound the start of an entity.
func (p *plan) confined(snap *contention.Snapshot, e *spot) confined {
	c := confined{in: p, e: e}
	if len(e.Ask.Gang.Shapes) != 1 {
		return c
	}
	members, per := needed(e), int64(1)
	if of, ok := snap.Placer.(places); ok {
		if sets, inside := of.sets(p.ledger, e.Ask); sets != nil {
			c.sets, members = sets, int64(inside)
		}
	}
	if len(p.ledger.Total) == 0 && members > 1 {
		return c // how many of them share a node is not known
	}
	for _, total := range p.ledger.Total {
		per = max(per, times(total, e.Ask.Gang.Shapes[0].Demand, math.MaxInt32))
	}
	c.fewest = int((members + per - 1) / per)
	return c
}

// bound returns an instant before which a gang of one shape has no place from another one on: in one of its sets, as
// many nodes as it needs at least have room for a member, and each of them for its whole limit. It is math.MaxInt64 if
// there is no such instant.
func (c *confined) bound(from int64) int64 {
	if c.fewest == 0 || from == math.MaxInt64 {
		return from
	}
	p, demand := c.in, c.e.Ask.Gang.Shapes[0].Demand
	p.earliests = p.earliests[:0]
	for _, steps := range p.nodes {
		p.earliests = append(p.earliests, roomFrom(steps, demand, from, c.e.RunTime))
	}
	if c.sets == nil {
		return nth(p.earliests, c.fewest)
	}
	first := int64(math.MaxInt64)
	for _, set := range c.sets {
		p.within = p.within[:0]
		for _, node := range set {
			if at := p.earliests[node]; at < first {
				p.within = append(p.within, at)
			}
		}
		first = min(first, nth(p.within, c.fewest))
	}
	return first
}

// nth returns the n-th smallest instant, which it may reorder; math.MaxInt64 if there are fewer.
func nth(of []int64, n int) int64 {
	switch {
	case n > len(of):
		return math.MaxInt64
	case n == 1:
		return slices.Min(of)
	}
	slices.Sort(of)
	return of[n-1]
}

// roomFrom returns the first instant from which a node has room for a demand for so many seconds, 0 for all time;
// math.MaxInt64 if there is none.
func roomFrom(steps []step, demand topology.Capacity, from, limit int64) int64 {
	since := int64(math.MaxInt64)
	for i, s := range steps {
		switch {
		case i+1 < len(steps) && steps[i+1].at <= from: // it is over before
		case times(s.free, demand, 1) == 0:
			since = math.MaxInt64
		case since == math.MaxInt64:
			since = max(s.at, from)
		}
		if since != math.MaxInt64 && i+1 < len(steps) && steps[i+1].at >= ending(since, limit) {
			return since
		}
	}
	return since
}
