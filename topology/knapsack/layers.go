package knapsack

import "slices"

// Layers number combinations of small counts beside the units: digit i runs from 0 to its limit, and a layer is such a
// combination. With no digits there is one layer. A launcher and two evaluators have limits 1 and 2 and so six layers:
// 0 is neither, 1 the launcher, 2 one evaluator, 5 all three. Layer 3, launcher and one evaluator, splits into 0+3,
// 1+2, 2+1 and 3+0.
type Layers struct {
	limits []int
	// pairs[e] are the layers that add up to e; sums[e] is the sum of its digits.
	pairs [][][2]int
	sums  []int
	count int
}

// NewLayers makes the layers for digits with these limits.
func NewLayers(limits []int) Layers {
	l := Layers{limits: limits, count: 1}
	for _, limit := range limits {
		l.count *= limit + 1
	}
	for e := range l.count {
		digits, sum := l.Digits(e), 0
		for _, d := range digits {
			sum += d
		}
		l.sums = append(l.sums, sum)
		var pairs [][2]int
		for x := range e + 1 {
			if l.within(x, e) {
				pairs = append(pairs, [2]int{x, e - x})
			}
		}
		l.pairs = append(l.pairs, pairs)
	}
	return l
}

// within reports whether no digit of x is larger than that of e.
func (l Layers) within(x, e int) bool {
	dx, de := l.Digits(x), l.Digits(e)
	for i := range dx {
		if dx[i] > de[i] {
			return false
		}
	}
	return true
}

// Count returns the number of layers.
func (l Layers) Count() int { return l.count }

// Digits returns the counts of a layer.
func (l Layers) Digits(e int) []int {
	d := make([]int, len(l.limits))
	for i, limit := range l.limits {
		d[i] = e % (limit + 1)
		e /= limit + 1
	}
	return d
}

// Sum returns the sum of a layer's digits.
func (l Layers) Sum(e int) int { return l.sums[e] }

// Full returns the layer whose digits are all at their limits.
func (l Layers) Full() int { return l.count - 1 }

// Splits yields every way to divide a layer in two, in a fixed order that begins with nothing and all.
func (l Layers) Splits(e int, yield func(x, y int)) {
	for _, p := range l.pairs[e] {
		yield(p[0], p[1])
	}
}

// With returns layers with one more digit, which is the last: layers in which it is 0 have the same numbers as before.
func (l Layers) With(limit int) Layers { return NewLayers(append(slices.Clone(l.limits), limit)) }
