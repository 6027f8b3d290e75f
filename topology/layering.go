package topology

import "slices"

// The smaller kinds of a gang are few members (16 at most), so a front can say for every number of each of them what the
// main kind can do beside them: a layer per combination. Further out than the segments' level one more digit says
// whether the last, shorter segment is there.

// Bounds of what is planned exactly.
const (
	mostSmall  = 16
	mostLayers = 2 * 3 * 17
)

// layering numbers combinations of small counts: digit i runs from 0 to limits[i].
type layering struct {
	limits []int
	// pairs[e] are the layers that add up to e; sums[e] is how many members a layer counts.
	pairs [][][2]int
	sums  []int
}

func newLayering(limits []int) layering {
	l := layering{limits: limits}
	for e := range l.count() {
		var pairs [][2]int
		for x := range e + 1 {
			if y, ok := l.minus(e, x); ok {
				pairs = append(pairs, [2]int{x, y})
			}
		}
		l.pairs = append(l.pairs, pairs)
		l.sums = append(l.sums, sum(l.digits(e)))
	}
	return l
}

// layersOf is how many layers the small counts need.
func layersOf(limits []int) int {
	n := 1
	for _, limit := range limits {
		n *= limit + 1
	}
	return n
}

func (l layering) count() int { return layersOf(l.limits) }

// digits returns the counts of a layer.
func (l layering) digits(e int) []int {
	d := make([]int, len(l.limits))
	for i, limit := range l.limits {
		d[i] = e % (limit + 1)
		e /= limit + 1
	}
	return d
}

// minus returns the layer that adds up to e with x.
func (l layering) minus(e, x int) (int, bool) {
	de, dx := l.digits(e), l.digits(x)
	for i := range de {
		if dx[i] > de[i] {
			return 0, false
		}
	}
	return e - x, true
}

// splits yields every way to divide a layer in two, in a fixed order.
func (l layering) splits(e int, yield func(x, y int)) {
	for _, p := range l.pairs[e] {
		yield(p[0], p[1])
	}
}

// full is the layer in which all small members are.
func (l layering) full() int { return l.count() - 1 }

// with returns the layering with one more digit, which becomes the last: layers without it keep their numbers.
func (l layering) with(limit int) layering {
	return newLayering(append(slices.Clone(l.limits), limit))
}
