// Package knapsack finds the cheapest way to divide a number of units among parts, each of which offers some numbers at
// some costs. It knows nothing of trees, nodes or gangs.
//
// A part is a Front: a Line of points (units, cost) for every layer. Layers count the few things that are not units, and
// add up like them.
package knapsack

import "slices"

// Mixer combines parts. It keeps its memory between calls and is not safe for concurrent use.
type Mixer struct {
	layers Layers
	exact  bool
	// best[layer][n] is the least cost found so far for n units.
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
func (m *Mixer) Nothing() Front {
	f := make(Front, m.layers.Count())
	f[0] = Line{{}}
	return f
}

// Rests returns, for each part, what it and all after it offer together, up to the limit of units; the last of all is
// nothing.
func (m *Mixer) Rests(parts []Front, limit int) []Front {
	rests := make([]Front, len(parts)+1)
	rests[len(parts)] = m.Nothing()
	for i, part := range slices.Backward(parts) {
		rests[i] = m.mix(part, rests[i+1], limit)
	}
	return rests
}

// mix returns what two parts offer together.
func (m *Mixer) mix(a, b Front, limit int) Front {
	out := make(Front, len(a))
	for e := range a {
		size := 0
		m.layers.Splits(e, func(x, y int) {
			if len(a[x]) > 0 && len(b[y]) > 0 {
				size = max(size, min(limit, a[x].Most()+b[y].Most())+1)
			}
		})
		if size == 0 {
			continue
		}
		best := m.clear(e, size)
		m.layers.Splits(e, func(x, y int) { m.combine(best, a[x], b[y]) })
		out[e] = m.collect(best)
	}
	return out
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
func (m *Mixer) combine(best []int64, a, b Line) {
	if len(a) > len(b) {
		a, b = b, a
	}
	within, last := len(b), len(best)-1
	for _, p := range a {
		for within > 0 && int(p.N)+int(b[within-1].N) > last {
			within--
		}
		if !m.exact && within < len(b) {
			best[last] = min(best[last], p.Cost+b[within].Cost)
		}
		if within == 0 {
			continue
		}
		row := best[p.N:]
		for _, q := range b[:within] {
			if cost := p.Cost + q.Cost; cost < row[q.N] {
				row[q.N] = cost
			}
		}
	}
}

// collect makes a line of the costs found: unless exact only those that no larger number of units offers for as little.
func (m *Mixer) collect(best []int64) Line {
	least := int64(Never)
	m.found = m.found[:0]
	for n, cost := range slices.Backward(best) {
		if cost < least {
			m.found = append(m.found, Point{int32(n), cost})
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
