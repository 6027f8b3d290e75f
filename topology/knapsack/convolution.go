// Package knapsack finds the cheapest way to divide a number of units among parts that each offer some numbers at some
// costs. It knows nothing of trees, nodes or gangs.
//
// A part is a ParetoFront: a Line of points (units, cost) for every layer. Layers count the few things that are not
// units, and add up like them.
package knapsack

import "slices"

// Mixer combines parts. It reuses its memory between calls and is not safe for concurrent use.
type Mixer struct {
	layers Layers
	exact  bool
	// best[layer] is memory for the windows of the layer.
	best [][]int64
	// found is the line being collected, backwards.
	found Line
}

// NewMixer makes a mixer of parts with these layers, whose lines are exact or not.
func NewMixer(layers Layers, exact bool) *Mixer {
	return &Mixer{layers: layers, exact: exact, best: make([][]int64, layers.Count())}
}

// Layers returns the layers of the mixer's parts.
func (m *Mixer) Layers() Layers { return m.layers }

// Exact reports whether a point stands for its own number only.
func (m *Mixer) Exact() bool { return m.exact }

// At returns the cost of n units on a line of the mixer's parts.
func (m *Mixer) At(l Line, n int) int64 {
	if m.exact {
		return l.Exactly(n)
	}
	return l.At(n)
}

// Nothing is the front of no part at all.
func (m *Mixer) Nothing() ParetoFront {
	f := make(ParetoFront, m.layers.Count())
	f[0] = Line{{}}
	return f
}

// Rests returns, for each part, the front of this part and all after it together, up to the limit of units; the last
// entry is empty.
func (m *Mixer) Rests(parts []ParetoFront, limit int) []ParetoFront {
	rests := make([]ParetoFront, len(parts)+1)
	rests[len(parts)] = m.Nothing()
	for i, part := range slices.Backward(parts) {
		rests[i] = m.convolve(part, rests[i+1], bounds{0, limit})
	}
	return rests
}

// bounds are the least and the most units that matter.
type bounds struct{ least, most int }

// convolve returns the front of two parts together within the bounds. Only the sums of two points are computed: with
// parts that hold 990 to 1,000 and 50 to 60 units, those from 1,040 to 1,060.
func (m *Mixer) convolve(a, b ParetoFront, within bounds) ParetoFront {
	out := make(ParetoFront, len(a))
	for e := range a {
		low, high := within.most, -1
		m.layers.Splits(e, func(x, y int) {
			if len(a[x]) > 0 && len(b[y]) > 0 {
				low = min(low, int(a[x][0].N+b[y][0].N))
				high = max(high, min(within.most, a[x].Most()+b[y].Most()))
			}
		})
		if low = max(low, within.least); high < low {
			continue
		}
		w := window{low, m.clear(e, high-low+1)}
		m.layers.Splits(e, func(x, y int) { m.combine(w, a[x], b[y]) })
		out[e] = m.collect(w)
	}
	return out
}

// window holds the least cost of every number of units from low on.
type window struct {
	low  int
	best []int64
}

func (m *Mixer) clear(layer, size int) []int64 {
	if cap(m.best[layer]) < size {
		m.best[layer] = make([]int64, size, size+size/2)
	}
	best := m.best[layer][:size]
	for i := range best {
		best[i] = Never
	}
	return best
}

// combine adds all pairs of points of two lines. Beyond the limit units count as the limit, unless they are exact: of
// those points only the first, the cheapest, matters.
func (m *Mixer) combine(w window, a, b Line) {
	if len(a) > len(b) {
		a, b = b, a
	}
	within, last := len(b), w.low+len(w.best)-1
	for _, p := range a {
		for within > 0 && int(p.N)+int(b[within-1].N) > last {
			within--
		}
		if !m.exact && within < len(b) {
			w.best[len(w.best)-1] = min(w.best[len(w.best)-1], p.Cost+b[within].Cost)
		}
		shift, from := int(p.N)-w.low, 0
		if within > 0 && shift+int(b[0].N) < 0 {
			from = b[:within].From(-shift)
		}
		for _, q := range b[from:within] {
			if at, cost := shift+int(q.N), p.Cost+q.Cost; cost < w.best[at] {
				w.best[at] = cost
			}
		}
	}
}

// collect makes a line of the costs found: unless exact only those that no larger number of units offers for as little.
func (m *Mixer) collect(w window) Line {
	least := int64(Never)
	m.found = m.found[:0]
	for i, cost := range slices.Backward(w.best) {
		if cost < least {
			m.found = append(m.found, Point{int32(w.low + i), cost})
			if !m.exact {
				least = cost
			}
		}
	}
	out := make(Line, len(m.found))
	for i, p := range m.found {
		out[len(out)-1-i] = p
	}
	return out
}
