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
	whole share
	rest  []front
}

// narrow returns the least cost of the whole in the children, keeping only what can be optimal; never if it does not
// fit. It reports false if it knows no solution to measure against.
func (s *solver) narrow(v int, whole share, kids []int) (int64, bool) {
	m, _ := s.mixerOf(v)
	fronts, lines := make([]front, len(kids)), make([]line, len(kids))
	for i, kid := range kids {
		fronts[i] = s.priced(kid)
		if lines[i] = envelope(fronts[i]); len(fronts[i][0]) == 0 {
			return never, true
		}
	}
	r, ok := relax(lines, whole.units)
	if !ok {
		return never, true
	}
	solution := s.solution(fronts, r, whole.layer)
	if solution == never || float64(solution)*float64(r.at.units) > mostExact {
		return never, false
	}
	gap := r.at.units*solution - r.bound
	n := narrowed{v: v, whole: whole, rest: make([]front, len(kids)+1)}
	n.rest[len(kids)] = nothing(m.layers)
	keep := sieve{r.at, gap}
	for i := len(kids) - 1; i >= 0; i-- {
		least := r.at.least(lines[i])
		own := sieve{r.at, gap + least}.sift(fronts[i], math.MaxInt32)
		keep.most += least
		n.rest[i] = keep.sift(m.mix(own, n.rest[i+1], whole.units), whole.units)
	}
	s.narrowed = n
	return s.at(n.rest[0][whole.layer], whole.units), true
}

// mostExact bounds products of costs and units, so that they are exact.
const mostExact = 1 << 60

// envelope is the cheapest way for each number of units in any layer.
func envelope(f front) line {
	if len(f) == 1 {
		return f[0]
	}
	var all line
	for _, l := range f {
		all = append(all, l...)
	}
	slices.SortFunc(all, func(a, b point) int { return cmp.Or(cmp.Compare(a.n, b.n), cmp.Compare(a.cost, b.cost)) })
	return slices.CompactFunc(all, func(a, b point) bool { return a.n == b.n })
}

// relaxation is the gang placed as if children could be used in part.
type relaxation struct {
	// at is the price at which the last unit came, bound the least cost times the units of that price.
	at    price
	bound int64
	// units are what each child holds before that last step, missing what is to come.
	units   []int
	missing int
}

// step is one edge of the lower convex hull of a line.
type step struct {
	price
	line int
}

// relax fills the units at the least price per unit. It reports false if there is no room for them.
func relax(lines []line, units int) (relaxation, bool) {
	r := relaxation{at: price{0, 1}, units: make([]int, len(lines)), missing: units}
	var steps []step
	total := 0
	for i, l := range lines {
		steps = hull(steps, l, i)
		r.units[i] = int(l[0].n)
		r.missing -= r.units[i]
		total += l.most()
	}
	if total < units {
		return r, false
	}
	slices.SortStableFunc(steps, func(a, b step) int { return cmp.Or(a.compare(b.price), cmp.Compare(a.line, b.line)) })
	for _, st := range steps {
		if r.missing <= 0 {
			break
		}
		if r.at = st.price; int(st.units) >= r.missing {
			break
		}
		r.missing -= int(st.units)
		r.units[st.line] += int(st.units)
	}
	r.bound = int64(units) * r.at.cost
	for _, l := range lines {
		r.bound += r.at.least(l)
	}
	return r, true
}

// solution returns the cost of one way with whole children: one of them takes what is missing, and one all the small
// members.
func (s *solver) solution(fronts []front, r relaxation, layer int) int64 {
	missing, total := max(r.missing, 0), int64(0)
	closing, hosting := [2]int64{never, never}, [2]int64{never, never} // the least of all, and of the others
	closer, host, both := -1, -1, int64(never)
	for i, f := range fronts {
		here := s.at(f[0], r.units[i])
		if here == never {
			return never
		}
		total += here
		if more := s.at(f[0], r.units[i]+missing); more != never {
			least(&closing, &closer, i, more-here)
		}
		if with := s.at(f[layer], r.units[i]); with != never {
			least(&hosting, &host, i, with-here)
		}
		if all := s.at(f[layer], r.units[i]+missing); all != never {
			both = min(both, all-here)
		}
	}
	if apart := sumOf(closing[0], hosting[0]); closer != host {
		both = min(both, apart)
	}
	both = min(both, sumOf(closing[1], hosting[0]), sumOf(closing[0], hosting[1]))
	return sumOf(total, both)
}

// least keeps the least value with who has it, and the least of all others.
func least(values *[2]int64, who *int, i int, value int64) {
	switch {
	case value < values[0]:
		values[0], values[1], *who = value, values[0], i
	case value < values[1]:
		values[1] = value
	}
}

func sumOf(a, b int64) int64 {
	if a == never || b == never {
		return never
	}
	return a + b
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

// sift keeps the points that pass, and those that have all units: a ring's may stand for more.
func (v sieve) sift(f front, all int) front {
	kept := make(front, len(f))
	for e, l := range f {
		for _, p := range l {
			if int(p.n) >= all || v.at.excess(p) <= v.most {
				kept[e] = append(kept[e], p)
			}
		}
	}
	return kept
}
