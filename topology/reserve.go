package topology

import (
	"math"
	"slices"
)

// Reservation is the time and the place at which a waiting gang can start.
type Reservation struct {
	// At is the end of the running gangs that make the last room, Now if there is room already.
	At int64
	// Placement is the gang's then if nothing else has changed.
	Placement Placement
	// then is the ledger at that instant, while nothing changes in the book that it was made from.
	then *futureLedger
}

// Earliest is Reserve without the reason if the gang never fits, which takes longer to find out than the rest.
func Earliest(l Ledger, g Gang, running []Running) (Reservation, bool, error) {
	a, err := newLeast(l, g)
	if err != nil {
		return Reservation{}, false, err
	}
	if counted := a.table(); counted != nil {
		r, short, err := a.reserveByTable(counted, running, g)
		return r, short == nil && err == nil, err
	}
	r, short, err := Reserve(l, g, running)
	return r, short == nil && err == nil, err
}

// Now is the instant of a reservation that needs no gang to end. It is before all ends.
const Now = math.MinInt64

// Reserve finds the earliest instant at which the gang fits if the running gangs end as expected, and its placement
// then. Gangs that end at the same instant leave together; those without a known end stay. An elastic gang starts as
// soon as its minimum fits. An overdue end counts as a future one.
//
// Two members, nodes that become free at 10, 20 and 30: they start at 20, on the first two (ExampleReserve). The search
// over the instants is binary, since a gang that fits at one fits at all that follow: of 1,000 ends ten are tried.
//
// The shortfall is that of the ledger when all gangs with a known end have left.
func Reserve(l Ledger, g Gang, running []Running) (Reservation, *Shortfall, error) {
	a, err := newLeast(l, g)
	if err != nil {
		return Reservation{}, nil, err
	}
	if counted := a.table(); counted != nil {
		r, short, err := a.reserveByTable(counted, running, g)
		if short != nil && err == nil && a.ledger.noted().explains {
			l.notes = nil
			return Reserve(l, g, running)
		}
		return r, short, err
	}
	if err = checkRunning(l, running); err != nil {
		return Reservation{}, nil, err
	}
	if a.misplaced() != nil {
		_, short, err := Place(l, g)
		return Reservation{}, short, err
	}
	instants := ends(running)
	// Departures only help, so the search is binary. The last instant is not evaluated: Place returns its shortfall.
	low, high := 0, len(instants)-1
	for low < high {
		middle := low + (high-low)/2
		fits, err := a.in(l.at(running, instants[middle])).fits()
		if err != nil {
			return Reservation{}, nil, err
		}
		if fits {
			high = middle
		} else {
			low = middle + 1
		}
	}
	p, short, err := Place(l.at(running, instants[low]), g)
	if short != nil || err != nil {
		return Reservation{}, short, err
	}
	return Reservation{At: instants[low], Placement: p}, nil, nil
}

// ends returns Now and the known ends, each once, ascending.
func ends(running []Running) []int64 {
	instants := []int64{Now}
	for _, r := range running {
		if r.End != EndUnknown {
			instants = append(instants, r.End)
		}
	}
	slices.Sort(instants)
	return slices.Compact(instants)
}

// at returns the ledger at an instant.
func (l Ledger) at(running []Running, instant int64) Ledger {
	var gone []int
	for i, r := range running {
		if instant > Now && r.End <= instant && r.End != EndUnknown {
			gone = append(gone, i)
		}
	}
	return l.freed(running, gone)
}

// in returns the question put to another ledger of the same tree.
func (a *ask) in(l Ledger) *ask {
	other := *a
	other.ledger = l
	return &other
}

// Admit places a gang that wants to start before the one that waits, the head, if that does not delay the head's
// reservation: if it is expected to end by then (end; EndUnknown if unknown), or if the head fits at that instant
// beside it. Its own best placement is tried first, then one without the nodes that are reserved; if that would delay
// the head too, all nodes count as reserved. The head is to start at 20 on both nodes of a rack: a gang of one member
// passes until 20, and until 30 only if a third node is there (ExampleReserve).
//
// The ledger and the running gangs are those of the moment of asking. When the head does not fit at the instant of its
// reservation any more, only gangs that end by then pass. An elastic head is not promised more than its minimum.
func (r Reservation) Admit(l Ledger, running []Running, head, c Gang, end int64) (Placement, *Shortfall, error) {
	p, short, err := Place(l, c)
	if short != nil || err != nil {
		return p, short, err
	}
	return r.AdmitAt(l, running, Passer{Gang: c, End: end, Placement: p}, head)
}

// Passer is a gang that wants to start before the head, and its placement if nothing is reserved.
type Passer struct {
	Gang      Gang
	End       int64
	Placement Placement
}

// AdmitAt is Admit for a gang with an answer of Place for the fleet without reservations.
func (r Reservation) AdmitAt(l Ledger, running []Running, of Passer, head Gang) (Placement, *Shortfall, error) {
	c, p := of.Gang, of.Placement
	a, err := newLeast(l, head)
	if err != nil {
		return Placement{}, nil, err
	}
	then, known := r.futureOf(l)
	if !known {
		if err = checkRunning(l, running); err != nil {
			return Placement{}, nil, err
		}
	}
	if of.End != EndUnknown && of.End <= r.At {
		return p, nil, nil
	}
	if !known {
		then = l.at(running, r.At)
	}
	for _, reserved := range [][]bool{r.reserved(l, head), everyNode(l)} {
		if ok, err := a.keepsBeside(then, c, p); ok || err != nil {
			return p, nil, err
		}
		var short *Shortfall
		if p, short, err = outside(l, reserved, head, c); short != nil || err != nil {
			return Placement{}, short, err
		}
	}
	return p, nil, nil // nothing of it waits for a place
}

// Outside places a gang that wants to start before the head on nodes that are not reserved. It is for a reservation
// without a known instant: there Admit would let every gang pass, one after another.
func (r Reservation) Outside(l Ledger, head, c Gang) (Placement, *Shortfall, error) {
	return outside(l, r.reserved(l, head), head, c)
}

// outside places a gang that would fit if nothing were reserved.
func outside(l Ledger, reserved []bool, head, c Gang) (Placement, *Shortfall, error) {
	if l.noted() != nil {
		if a, err := newLeast(l, c); err == nil && a.table() != nil {
			p, short, err := a.offLimits(reserved, c)
			if short == nil || !l.noted().explains {
				return p, short, err
			}
		}
	}
	p, short, err := Place(l, c.barredFrom(reserved, "reserved for "+head.Name))
	if short != nil {
		short.Never = false // without the reservation it does fit
	}
	return p, short, err
}

// keeps reports whether the head of the queue fits.
func (a *ask) keeps() (bool, error) {
	if a.misplaced() != nil {
		return false, nil
	}
	return a.fits()
}

// reserved marks the nodes that the head is to have: those of its placement and, if it spares nodes, all in the domains
// that it spares them in.
func (r Reservation) reserved(l Ledger, head Gang) []bool {
	nodes := make([]bool, l.Len())
	for _, node := range r.Placement.Nodes {
		if node >= 0 && node < len(nodes) {
			nodes[node] = true
		}
	}
	level, ok := l.Tree.Level(head.Spares.Level)
	if head.Spares.Nodes == 0 || !ok {
		return nodes
	}
	group := l.Tree.layout().groups[level]
	domains := make(map[int32]bool)
	for node, used := range nodes {
		if used {
			domains[group[node]] = true
		}
	}
	for node := range nodes {
		nodes[node] = domains[group[node]]
	}
	return nodes
}

func everyNode(l Ledger) []bool { return slices.Repeat([]bool{true}, l.Len()) }

// Beside returns the ledger after the gang has taken its places. Nothing of the first ledger is changed.
func (l Ledger) Beside(c Gang, p Placement) Ledger {
	free := slices.Clone(l.Free)
	for i, node := range p.Nodes {
		if m := c.Members[i]; !m.Placed {
			free[node] = free[node].less(c.Shapes[m.Shape].Demand, 1)
		}
	}
	return l.Differing(free, p.Nodes)
}

// barredFrom returns the gang with one more rule for its members still to be placed. The caller's own rules stand.
func (g Gang) barredFrom(nodes []bool, rule string) Gang {
	g.Shapes = slices.Clone(g.Shapes)
	for i, s := range g.Shapes {
		barred := make([]string, len(nodes))
		copy(barred, s.Barred)
		for node, more := range nodes {
			if more && barred[node] == "" {
				barred[node] = rule
			}
		}
		g.Shapes[i].Barred = barred
	}
	return g
}
