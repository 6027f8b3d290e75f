package topology

import (
	"cmp"
	"slices"
)

// outlook is a ledger to come, and the state of the book that it was foreseen from.
type outlook struct {
	ledger Ledger
	of     *notes
	at     int
}

// foreseen is the ledger at the reservation's instant, if it is known still.
func (r Reservation) foreseen(l Ledger) (Ledger, bool) {
	if n := l.noted(); n == nil || r.then == nil || r.then.of != n || r.then.at != n.from+len(n.journal) {
		return Ledger{}, false
	}
	return r.then.ledger, true
}

// await is Reserve for a gang that a book counts: what runs leaves in the order of its ends until the gang fits.
func (a *ask) await(counted *census, running []Running, g Gang) (Reservation, *Shortfall, error) {
	n, at := a.ledger.noted(), int64(Now)
	then, fits := a.ledger, counted.fits()
	if !fits {
		then, at, fits = a.until(counted, byEnd(running))
	}
	if !fits && n.explains {
		l := a.ledger
		l.notes = nil
		return Reserve(l, g, running)
	}
	if !fits {
		return Reservation{}, &Shortfall{Gang: a.gang.Name, Members: len(a.gang.Members)}, nil
	}
	p, short, err := Place(then, g)
	if short != nil || err != nil {
		return Reservation{}, short, err
	}
	return Reservation{at, p, &outlook{then, n, n.from + len(n.journal)}}, nil, nil
}

// byEnd sorts what runs by its ends; what is sorted already is not copied.
func byEnd(running []Running) []Running {
	compare := func(x, y Running) int { return cmp.Compare(x.End, y.End) }
	if slices.IsSortedFunc(running, compare) {
		return running
	}
	return slices.SortedStableFunc(slices.Values(running), compare)
}

// until lets go who ends, until the gang fits. It returns the ledger and the instant at which it does, and whether that ever comes.
func (a *ask) until(counted *census, running []Running) (Ledger, int64, bool) {
	l, before := a.ledger, a.ledger.noted()
	spare := before.lend()
	free := append(spare.free[:0], l.Free...)
	c := counted.cloneInto(spare.census, free)
	touched := spare.touched[:0]
	own := append(spare.own[:0], make([]bool, len(free))...)
	for i := 0; i < len(running) && running[i].End != EndUnknown; {
		end := running[i].End
		for ; i < len(running) && running[i].End == end; i++ {
			for _, h := range running[i].Holds {
				if !own[h.Node] {
					own[h.Node], touched = true, append(touched, h.Node)
					from := len(spare.pieces)
					spare.pieces = append(spare.pieces, free[h.Node]...)
					free[h.Node] = spare.pieces[from:len(spare.pieces):len(spare.pieces)]
				}
				free[h.Node] = free[h.Node].plus(h.Demand)
				c.count(h.Node)
			}
		}
		if !c.broken && c.fits() {
			l.Free = free
			var buffer [keyRoom]byte
			l.notes = &notes{
				free: free, parent: before, others: touched, explains: before.explains,
				censuses: map[string]*census{string(appendCensusKey(buffer[:0], a)): c},
			}
			return l, end, true
		}
	}
	before.giveBack(foresight{free, spare.pieces, c, touched, own})
	return l, 0, false
}

// foresight is memory for a ledger to come that nobody keeps.
type foresight struct {
	free    []Capacity
	pieces  []int64
	census  *census
	touched []int
	own     []bool
}

// lend returns the memory of a search that found nothing, if there is some.
func (n *notes) lend() foresight {
	for n.parent != nil {
		n = n.parent
	}
	spare := n.spare
	n.spare = foresight{}
	spare.pieces = spare.pieces[:0]
	return spare
}

// giveBack keeps memory for the next search.
func (n *notes) giveBack(f foresight) {
	for n.parent != nil {
		n = n.parent
	}
	n.spare = f
}

// offLimits places a gang that a book counts as if nothing were free on these nodes.
func (a *ask) offLimits(reserved []bool, c Gang) (Placement, *Shortfall, error) {
	l, counted := a.ledger, a.census()
	nodes, left := []int(nil), int(counted.units[0])
	for node, is := range reserved {
		if is {
			nodes, left = append(nodes, node), left-int(counted.room[node])
		}
	}
	if left < counted.target {
		return Placement{}, &Shortfall{Gang: c.Name, Members: counted.target}, nil
	}
	free := slices.Clone(l.Free)
	for _, node := range nodes {
		free[node] = nil
	}
	return Place(l.Differing(free, nodes), c)
}

// keepsBeside reports whether the head of the queue fits into a ledger beside a gang that is placed there.
func (a *ask) keepsBeside(then Ledger, c Gang, p Placement) (bool, error) {
	const few = 64 // members are compared with each other
	counted := a.censusIn(then)
	if counted == nil || counted.required >= 0 || len(p.Nodes) > few {
		return a.in(then.Beside(c, p)).keeps()
	}
	left := int(counted.units[0])
	for rank, node := range p.Nodes {
		if slices.Contains(p.Nodes[:rank], node) {
			continue // with the first one there
		}
		free := then.Free[node]
		for more, other := range p.Nodes[rank:] {
			if m := c.Members[rank+more]; other == node && !m.Placed {
				free = free.less(c.Shapes[m.Shape].Demand, 1)
			}
		}
		left -= int(counted.room[node]) - min(free.times(counted.demand, counted.limit), int(counted.room[node]))
	}
	return left >= counted.target, nil
}
