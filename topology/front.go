package topology

import (
	"cmp"
	"math"
	"slices"
)

// point is one way to use a vertex: n units of the main kind of members (members, or whole segments further out than
// the segments' level) at this cost.
type point struct {
	n    int32
	cost int64
}

// line is all ways worth knowing, by n ascending. For rings and chains, where fewer units never cost more, a point
// stands for all smaller n too, and cost ascends; for all-to-all each point stands for its own n.
type line []point

// front is a line per layer: which of the few other members (see layering) are there as well. An empty line says that
// they cannot be.
type front []line

// never is the cost of what cannot be.
const never = math.MaxInt64

// from returns the place of the first point of at least n units.
func (l line) from(n int) int {
	i, _ := slices.BinarySearchFunc(l, n, func(p point, n int) int { return cmp.Compare(int(p.n), n) })
	return i
}

// at returns the cost of n units.
func (l line) at(n int) int64 {
	if i := l.from(n); i < len(l) {
		return l[i].cost
	}
	return never
}

// exactly returns the cost of n units, for lines whose points stand for themselves alone.
func (l line) exactly(n int) int64 {
	if i := l.from(n); i < len(l) && int(l[i].n) == n {
		return l[i].cost
	}
	return never
}

// most returns the largest n of the line, -1 if it is empty.
func (l line) most() int {
	if len(l) == 0 {
		return -1
	}
	return int(l[len(l)-1].n)
}

// cap cuts the line at n units.
func (l line) cap(n int) line {
	i := l.from(n)
	if i == len(l) {
		return l
	}
	cut := append(make(line, 0, i+1), l[:i]...)
	return append(cut, point{int32(n), l[i].cost})
}

// mixer combines lines. It keeps its memory between calls.
type mixer struct {
	layers layering
	// exact is set for all-to-all.
	exact bool
	// best[layer][n] is the least cost found so far for n units.
	best [][]int64
	// found is the line being collected, backwards.
	found line
}

func newMixer(layers layering, exact bool) *mixer {
	return &mixer{layers: layers, exact: exact, best: make([][]int64, layers.count())}
}

// mix returns the ways to use two vertices side by side, up to the limit of units.
func (m *mixer) mix(a, b front, limit int) front {
	out := make(front, len(a))
	for e := range a {
		size := 0
		m.layers.splits(e, func(x, y int) {
			if len(a[x]) > 0 && len(b[y]) > 0 {
				size = max(size, min(limit, a[x].most()+b[y].most())+1)
			}
		})
		if size == 0 {
			continue
		}
		best := m.clear(e, size)
		m.layers.splits(e, func(x, y int) { m.combine(best, a[x], b[y]) })
		out[e] = m.collect(best)
	}
	return out
}

func (m *mixer) clear(layer, size int) []int64 {
	if cap(m.best[layer]) < size {
		m.best[layer] = make([]int64, size, size+size/2)
	}
	best := m.best[layer][:size]
	for i := range best {
		best[i] = never
	}
	return best
}

// combine adds all pairs of points of two lines. Beyond the limit a ring's units count as the limit: of those points
// only the first, the cheapest, matters.
func (m *mixer) combine(best []int64, a, b line) {
	if len(a) > len(b) {
		a, b = b, a
	}
	within, last := len(b), len(best)-1
	for _, p := range a {
		for within > 0 && int(p.n)+int(b[within-1].n) > last {
			within--
		}
		if !m.exact && within < len(b) {
			best[last] = min(best[last], p.cost+b[within].cost)
		}
		row := best[p.n:]
		for _, q := range b[:within] {
			if cost := p.cost + q.cost; cost < row[q.n] {
				row[q.n] = cost
			}
		}
	}
}

// collect makes a line of the costs found: of a ring only those that no larger number of units offers for as little.
func (m *mixer) collect(best []int64) line {
	least := int64(never)
	m.found = m.found[:0]
	for n, cost := range slices.Backward(best) {
		if cost < least {
			m.found = append(m.found, point{int32(n), cost})
			if !m.exact {
				least = cost
			}
		}
	}
	out := make(line, len(m.found))
	for i, p := range m.found {
		out[len(out)-1-i] = p
	}
	return out
}
