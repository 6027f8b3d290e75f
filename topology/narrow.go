package topology

import (
	"cmp"
	"math"
	"slices"
)

// A vertex with many children would need a table of all numbers of units, though only one is asked for: the whole gang.
// A Lagrangian bound leaves most of that table out. At the price per unit at which a fractional gang would be full, each
// way to use a child costs some more than the best way at that price, its excess; a solution no dearer than one already
// known cannot have more excess in all than the gap between that solution and the bound. Whatever has more is dropped,
// and no optimal solution is lost, nor one that costs the same. (The reduced cost fixing of knapsack solvers: Kellerer,
// Pferschy, Pisinger, Knapsack Problems, §11.)

// price is a cost per unit, as a fraction.
type price struct{ cost, units int64 }

func (p price) compare(q price) int { return cmp.Compare(p.cost*q.units, q.cost*p.units) }

// excess is cost·units of the price less what so many units are worth at it: an integer.
func (p price) excess(q point) int64 { return q.cost*p.units - int64(q.n)*p.cost }

// narrowed is what is left of the ways to place the whole gang in a vertex.
type narrowed struct {
	v     int
	units int
	rest  []front
}

// narrow returns the least cost of exactly so many units in the children, keeping only what can be optimal; never if
// they do not fit. It is for rings and chains of one kind.
func (s *solver) narrow(v, units int, kids []int) int64 {
	lines := make([]line, len(kids))
	for i, kid := range kids {
		lines[i] = s.priced(kid)[0]
		if len(lines[i]) == 0 {
			return never
		}
	}
	r, ok := relax(lines, units)
	if !ok {
		return never
	}
	at, gap := r.at, r.at.units*r.solution-r.bound
	n := narrowed{v: v, units: units, rest: make([]front, len(kids)+1)}
	n.rest[len(kids)] = front{line{{}}}
	keep := sieve{at: at, most: gap}
	for i := len(kids) - 1; i >= 0; i-- {
		least := at.least(lines[i])
		var own line
		for _, p := range lines[i] {
			if at.excess(p)-least <= gap {
				own = append(own, p)
			}
		}
		keep.most += least
		n.rest[i] = s.mixFew.sifted(front{own}, n.rest[i+1], units, keep)
	}
	s.narrowed = n
	return n.rest[0][0].at(units)
}

// step is one edge of the lower convex hull of a line.
type step struct {
	price
	line int
}

// relaxation is the gang placed as if children could be used in part.
type relaxation struct {
	// at is the price at which the last unit came, bound the least cost times the units of that price.
	at    price
	bound int64
	// solution is the cost with whole children: the steps before the last one, and the child that closes the gap for least.
	solution int64
}

// relax fills the units at the least price per unit. It reports false if there is no room for them.
func relax(lines []line, units int) (relaxation, bool) {
	var steps []step
	chosen := make([]point, len(lines))
	missing, cost, total := int64(units), int64(0), int64(0)
	for i, l := range lines {
		steps = hull(steps, l, i)
		chosen[i] = l[0]
		missing -= int64(l[0].n)
		cost += l[0].cost
		total += int64(l.most())
	}
	if total < int64(units) {
		return relaxation{}, false
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Or(a.compare(b.price), cmp.Compare(a.line, b.line)) })
	at := price{0, 1}
	for _, st := range steps {
		if missing <= 0 {
			break
		}
		if at = st.price; st.units >= missing {
			break
		}
		missing -= st.units
		cost += st.cost
		chosen[st.line] = point{chosen[st.line].n + int32(st.units), chosen[st.line].cost + st.cost}
	}
	solution, bound := cost, int64(units)*at.cost
	if missing > 0 {
		solution = never
	}
	for i, l := range lines {
		if c := l.at(int(int64(chosen[i].n) + missing)); missing > 0 && c != never {
			solution = min(solution, cost-chosen[i].cost+c)
		}
		bound += at.least(l)
	}
	return relaxation{at, bound, solution}, true
}

// least returns the least excess of any point of the line.
func (p price) least(l line) int64 {
	least := int64(math.MaxInt64)
	for _, q := range l {
		least = min(least, p.excess(q))
	}
	return least
}

// hull appends the edges of the line's lower convex hull.
func hull(steps []step, l line, index int) []step {
	from := len(steps)
	for i := 1; i < len(l); i++ {
		edge := price{l[i].cost - l[i-1].cost, int64(l[i].n - l[i-1].n)}
		for len(steps) > from && edge.compare(steps[len(steps)-1].price) <= 0 {
			last := steps[len(steps)-1].price
			edge = price{edge.cost + last.cost, edge.units + last.units}
			steps = steps[:len(steps)-1]
		}
		steps = append(steps, step{edge, index})
	}
	return steps
}

// sieve drops points with more excess than a bound allows.
type sieve struct {
	at   price
	most int64
}

// sifted is mix for fronts of one layer, with only the points kept that the sieve lets through, and those that have all
// units.
func (m *mixer) sifted(a, b front, limit int, keep sieve) front {
	mixed := m.mix(a, b, limit)
	kept := mixed[0][:0]
	for _, p := range mixed[0] {
		if int(p.n) >= limit || keep.at.excess(p) <= keep.most {
			kept = append(kept, p)
		}
	}
	return front{kept}
}
