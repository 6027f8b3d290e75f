package topology

import (
	"cmp"
	"slices"
)

// futureLedger is a predicted ledger, and the state of the book that it was derived from.
type futureLedger struct {
	ledger Ledger
	of     *notes
	at     int
	memory futureMemory
}

// Discard gives the memory of a reservation back to the book that it was made from. Admit does not take it any more.
func (r Reservation) Discard() {
	if r.then == nil || r.then.of == nil {
		return
	}
	if r.then.memory.free != nil {
		r.then.of.root().spare = r.then.memory
	}
	r.then.of = nil
}

// futureOf is the ledger at the reservation's instant, if it is known still.
func (r Reservation) futureOf(l Ledger) (Ledger, bool) {
	if n := l.noted(); n == nil || r.then == nil || r.then.of != n || r.then.at != n.from+len(n.journal) {
		return Ledger{}, false
	}
	return r.then.ledger, true
}

// reserveByTable is Reserve for a gang that a book counts: running gangs leave in the order of their ends until the
// gang fits.
func (a *ask) reserveByTable(counted *subtreeTable, running []Running, g Gang) (Reservation, *Shortfall, error) {
	n, at := a.ledger.noted(), int64(Now)
	then, fits := a.ledger, counted.fits()
	var memory futureMemory
	if !fits {
		then, memory, fits = a.until(counted, byEnd(running))
		at = memory.end
	}
	if !fits {
		n.root().spare = memory
	}
	if !fits {
		return Reservation{}, &Shortfall{Gang: a.gang.Name, Members: len(a.gang.Members)}, nil
	}
	p, short, err := Place(then, g)
	if short != nil || err != nil {
		return Reservation{}, short, err
	}
	return Reservation{at, p, &futureLedger{then, n, n.from + len(n.journal), memory}}, nil, nil
}

// byEnd sorts running gangs by end; a sorted slice is not copied.
func byEnd(running []Running) []Running {
	compare := func(x, y Running) int { return cmp.Compare(x.End, y.End) }
	if slices.IsSortedFunc(running, compare) {
		return running
	}
	return slices.SortedStableFunc(slices.Values(running), compare)
}

// until releases gangs in the order of their ends until the gang fits. It returns the ledger at that instant, its
// memory, and false if there is no such instant.
func (a *ask) until(counted *subtreeTable, running []Running) (Ledger, futureMemory, bool) {
	l, before := a.ledger, a.ledger.noted()
	spare := before.root().lend()
	free := append(spare.free[:0], l.Free...)
	t := counted.cloneInto(spare.table, free)
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
				t.count(h.Node)
			}
		}
		if !t.broken && t.fits() {
			l.Free = free
			var buffer [keyRoom]byte
			l.notes = &notes{
				free: free, parent: before, others: touched, explains: before.explains,
				tables: map[string]*subtreeTable{string(appendTableKey(buffer[:0], a)): t},
			}
			return l, futureMemory{free, spare.pieces, t, touched, own, end}, true
		}
	}
	return l, futureMemory{free, spare.pieces, t, touched, own, 0}, false
}

// futureMemory is memory for a predicted ledger.
type futureMemory struct {
	free    []Capacity
	pieces  []int64
	table   *subtreeTable
	touched []int
	own     []bool
	// end is its instant.
	end int64
}

// lend returns the memory of a finished search, if there is some.
func (n *notes) lend() futureMemory {
	spare := n.spare
	n.spare = futureMemory{}
	spare.pieces = spare.pieces[:0]
	return spare
}

// offLimits places a gang that a book counts as if nothing were free on these nodes.
func (a *ask) offLimits(reserved []bool, c Gang) (Placement, *Shortfall, error) {
	l, counted := a.ledger, a.table()
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
	counted := a.tableIn(then)
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
