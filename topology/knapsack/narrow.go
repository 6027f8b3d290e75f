package knapsack

import (
	"cmp"
	"math"
	"slices"
)

// Parts in great number would need a table of all numbers of units, though only one is asked for: the whole.
// A Lagrangian bound leaves most of that table out. At the price per unit at which a fractional whole would be full, each
// way to use a part costs some more than the best way at that price, its excess; a solution no dearer than one already
// known cannot have more excess in all than the gap between that solution and the bound. Whatever has more is dropped,
// and no optimal solution is lost, nor one that costs the same. (The reduced cost fixing of knapsack solvers: Kellerer,
// Pferschy, Pisinger, Knapsack Problems, §11.)

// price is a cost per unit, as a fraction.
type price struct{ cost, units int64 }

func (p price) compare(q price) int { return cmp.Compare(p.cost*q.units, q.cost*p.units) }

// excess is cost·units of the price less what so many units are worth at it: an integer.
func (p price) excess(q Point) int64 { return q.Cost*p.units - int64(q.N)*p.cost }

// Narrow returns the least cost of the whole in the parts, and the rests (see Rests) with only what can be optimal kept;
// Never if it does not fit. It reports false if it knows no solution to measure against.
func (m *Mixer) Narrow(parts []Front, whole Share) (rests []Front, cost int64, ok bool) {
	lines := make([]Line, len(parts))
	for i, part := range parts {
		if lines[i] = envelope(part); len(part[0]) == 0 {
			return nil, Never, true
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
	keep := sieve{r.at, r.at.units*solution - r.bound}
	gap := keep.most
	rests = make([]Front, len(parts)+1)
	rests[len(parts)] = m.Nothing()
	for i, part := range slices.Backward(parts) {
		least := r.at.least(lines[i])
		own := sieve{r.at, gap + least}.sift(part, math.MaxInt32)
		keep.most += least
		rests[i] = keep.sift(m.mix(own, rests[i+1], whole.Units), whole.Units)
	}
	return rests, m.At(rests[0][whole.Layer], whole.Units), true
}

// mostExact bounds products of costs and units, so that they are exact.
const mostExact = 1 << 60

// envelope is the cheapest way for each number of units in any layer.
func envelope(f Front) Line {
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
	// at is the price at which the last unit came, bound the least cost times the units of that price.
	at    price
	bound int64
	// units are what each part holds before that last step, missing what is to come.
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
	total := 0
	for i, l := range lines {
		steps = hull(steps, l, i)
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
	for _, l := range lines {
		r.bound += r.at.least(l)
	}
	return r, true
}

// solution returns the cost of one way to divide the whole: one part takes what is missing, and one the layer.
func (m *Mixer) solution(parts []Front, r relaxation, layer int) int64 {
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

// least keeps the least value with who has it, and the least of all others.
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

// sift keeps the points that pass, and those that have all units: a ring's may stand for more.
func (v sieve) sift(f Front, all int) Front {
	kept := make(Front, len(f))
	for e, l := range f {
		for _, p := range l {
			if int(p.N) >= all || v.at.excess(p) <= v.most {
				kept[e] = append(kept[e], p)
			}
		}
	}
	return kept
}
