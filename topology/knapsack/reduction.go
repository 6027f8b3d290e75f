package knapsack

import (
	"cmp"
	"math"
	"slices"
)

// Parts in great number would need a table of all numbers of units, though only one is needed: the whole. A Lagrangian
// bound leaves most of that table out. At the price per unit at which a fractional whole would be full, each way to use
// a part costs some more than the best way at that price, its excess; a solution no dearer than one already known
// cannot have more excess in all than the gap between that solution and the bound. Points with more are dropped, and no
// optimal solution is lost, nor one that costs the same. (The reduced cost fixing of knapsack solvers: Kellerer,
// Pferschy, Pisinger, Knapsack Problems, §11.)
//
// Example: parts of up to 4, 3 and 2 units for 100 each, and a whole of 5. The first part and a third of the second
// make the bound, 133⅓, at a price of 33⅓ for a unit. The first and all of the second is a solution of 200, so the gap
// is 66⅔. At that price it is 33⅓ dearer to leave the first part out than to take it, and 33⅓ dearer to take the third
// than to leave it: 3+2 has an excess of 66⅔ and is retained, as it costs 200 too.

// price is a cost per unit, as a fraction.
type price struct{ cost, units int64 }

func (p price) compare(q price) int { return cmp.Compare(p.cost*q.units, q.cost*p.units) }

// excess is cost·units of the price less the worth of so many units at it: an integer.
func (p price) excess(q Point) int64 { return q.Cost*p.units - int64(q.N)*p.cost }

// Reduce returns the least cost of the whole in the parts, and the rests (see Rests) reduced to points that can be
// optimal; Never if it does not fit. It reports false if it has no solution to compare with.
func (m *Mixer) Reduce(parts []ParetoFront, whole Share) (rests []ParetoFront, cost int64, ok bool) {
	lines := make([]Line, len(parts))
	for i, part := range parts {
		if len(part[0]) == 0 {
			return nil, Never, true
		}
		if i > 0 && part.is(parts[i-1]) {
			lines[i] = lines[i-1]
		} else {
			lines[i] = envelope(part)
		}
	}
	r, ok := relax(lines, whole.Units)
	if !ok {
		return nil, Never, true
	}
	solution := m.solution(parts, r, whole.Layer)
	if solution == Never || float64(solution)*float64(r.at.units) > mostExact {
		return nil, Never, false
	}
	rests = m.kept(parts, lines, whole, sieve{r.at, r.at.units*solution - r.bound})
	return rests, m.At(rests[0][whole.Layer], whole.Units), true
}

// kept returns the rests without points that only belong to solutions with more excess in all than the sieve lets
// through.
func (m *Mixer) kept(parts []ParetoFront, lines []Line, whole Share, keep sieve) []ParetoFront {
	own, least := make([]ParetoFront, len(parts)), make([]int64, len(parts))
	for i, part := range parts {
		if i > 0 && part.is(parts[i-1]) {
			own[i], least[i] = own[i-1], least[i-1]
			continue
		}
		least[i] = keep.at.least(lines[i])
		own[i] = sieve{keep.at, keep.most + least[i]}.sift(part.clone(), math.MaxInt32)
	}
	before := m.before(parts, own, whole.Units)
	rests := make([]ParetoFront, len(parts)+1)
	rests[len(parts)] = m.Nothing()
	for i := range slices.Backward(parts) {
		keep.most += least[i]
		rests[i] = keep.sift(m.convolve(own[i], rests[i+1], before[i]), before[i].most)
	}
	return rests
}

// before returns the bounds of the units that the parts from each on have to hold, given the capacity of those before
// it. With three parts that hold up to 10 each and a whole of 25, the last two hold 15 to 25 and the last one 5 to 10.
func (m *Mixer) before(parts, own []ParetoFront, units int) []bounds {
	all := make([]bounds, len(parts))
	b := bounds{units, units}
	for i, f := range own {
		all[i] = bounds{max(b.least, 0), b.most}
		least, most := math.MaxInt32, 0
		for e, l := range f {
			if len(l) == 0 {
				continue
			}
			most = max(most, l.Most())
			if !m.exact && l[0] == parts[i][e][0] {
				least = 0 // the first point represents 0 units, too
			}
			least = min(least, int(l[0].N))
		}
		b = bounds{b.least - most, max(b.most-least, 0)}
	}
	return all
}

// is reports whether two fronts are the same memory, as those of parts that look the same are.
func (f ParetoFront) is(g ParetoFront) bool { return len(f) == len(g) && &f[0] == &g[0] }

// is reports whether two lines are the same memory. A part of a whole has at least one point.
func (l Line) is(m Line) bool { return len(l) == len(m) && &l[0] == &m[0] }

// mostExact bounds products of costs and units, so that they are exact.
const mostExact = 1 << 60

// envelope is the cheapest way for each number of units in any layer.
func envelope(f ParetoFront) Line {
	if len(f) == 1 {
		return f[0]
	}
	var all Line
	for _, l := range f {
		all = append(all, l...)
	}
	slices.SortFunc(all, func(a, b Point) int { return cmp.Or(cmp.Compare(a.N, b.N), cmp.Compare(a.Cost, b.Cost)) })
	return slices.CompactFunc(all, func(a, b Point) bool { return a.N == b.N })
}

// relaxation is the whole divided as if points could be used in part.
type relaxation struct {
	// at is the price of the last unit, bound the least cost times the units of that price.
	at    price
	bound int64
	// units are those that each part holds before that last step, missing those that the step has to add.
	units   []int
	missing int
}

// step is one edge of the lower convex hull of a line.
type step struct {
	price
	line int
}

// relax fills the units at the least price per unit. It reports false if there is no room for them.
func relax(lines []Line, units int) (relaxation, bool) {
	r := relaxation{at: price{0, 1}, units: make([]int, len(lines)), missing: units}
	var steps []step
	total, from := 0, 0
	for i, l := range lines {
		if i > 0 && l.is(lines[i-1]) {
			for _, st := range steps[from:] {
				steps = append(steps, step{st.price, i})
			}
			from += (len(steps) - from) / 2
		} else {
			from = len(steps)
			steps = hull(steps, l, i)
		}
		r.units[i] = int(l[0].N)
		r.missing -= r.units[i]
		total += l.Most()
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
	least := int64(0)
	for i, l := range lines {
		if i == 0 || !l.is(lines[i-1]) {
			least = r.at.least(l)
		}
		r.bound += least
	}
	return r, true
}

// solution returns the cost of one way to divide the whole: one part takes the missing units, and one the layer.
func (m *Mixer) solution(parts []ParetoFront, r relaxation, layer int) int64 {
	missing, total := max(r.missing, 0), int64(0)
	closing, hosting := [2]int64{Never, Never}, [2]int64{Never, Never} // the least of all, and of the others
	closer, host, both := -1, -1, int64(Never)
	for i, f := range parts {
		here := m.At(f[0], r.units[i])
		if here == Never {
			return Never
		}
		total += here
		if more := m.At(f[0], r.units[i]+missing); more != Never {
			least(&closing, &closer, i, more-here)
		}
		if with := m.At(f[layer], r.units[i]); with != Never {
			least(&hosting, &host, i, with-here)
		}
		if all := m.At(f[layer], r.units[i]+missing); all != Never {
			both = min(both, all-here)
		}
	}
	if apart := sum(closing[0], hosting[0]); closer != host {
		both = min(both, apart)
	}
	both = min(both, sum(closing[1], hosting[0]), sum(closing[0], hosting[1]))
	return sum(total, both)
}

// least updates the least value, the index that has it, and the least of all others.
func least(values *[2]int64, who *int, i int, value int64) {
	switch {
	case value < values[0]:
		values[0], values[1], *who = value, values[0], i
	case value < values[1]:
		values[1] = value
	}
}

// least returns the least excess of any point of the line.
func (p price) least(l Line) int64 {
	least := int64(math.MaxInt64)
	for _, q := range l {
		least = min(least, p.excess(q))
	}
	return least
}

// hull appends the edges of the line's lower convex hull.
func hull(steps []step, l Line, index int) []step {
	from := len(steps)
	for i := 1; i < len(l); i++ {
		edge := price{l[i].Cost - l[i-1].Cost, int64(l[i].N - l[i-1].N)}
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

// sift drops the points that do not pass, in place, but for those that have all units: a ring's may stand for more.
func (v sieve) sift(f ParetoFront, all int) ParetoFront {
	for e, l := range f {
		f[e] = slices.DeleteFunc(l, func(p Point) bool { return int(p.N) < all && v.at.excess(p) > v.most })
	}
	return f
}

// clone copies the front and its lines.
func (f ParetoFront) clone() ParetoFront {
	g := make(ParetoFront, len(f))
	for e, l := range f {
		g[e] = slices.Clone(l)
	}
	return g
}
