package knapsack

import "math"

// Point is one way to use a part: so many units at this cost.
type Point struct {
	N    int32
	Cost int64
}

// Line is all ways worth knowing, by N ascending. A point also represents all smaller numbers, and costs ascend; in an
// exact line (see Mixer) each point stands for its own number only, and costs are unchanged.
type Line []Point

// ParetoFront is a line per layer; an empty line is an impossible layer. A line of [0:0, 4:100, 9:150] offers up to
// four units for 100 and up to nine for 150: five for 160 would be dominated, and is left out.
type ParetoFront []Line

// Never is the cost of the impossible.
const Never = math.MaxInt64

// From returns the place of the first point of at least n units. It is called for each pair of points, and a search of
// package slices takes three times as long, since it calls a function for each comparison.
func (l Line) From(n int) int {
	from, to := 0, len(l)
	for from < to {
		if middle := (from + to) / 2; int(l[middle].N) < n {
			from = middle + 1
		} else {
			to = middle
		}
	}
	return from
}

// At returns the cost of n units, Never if the line has no such.
func (l Line) At(n int) int64 {
	if i := l.From(n); i < len(l) {
		return l[i].Cost
	}
	return Never
}

// Exactly returns the cost of n units of an exact line, Never if the line has no such.
func (l Line) Exactly(n int) int64 {
	if i := l.From(n); i < len(l) && int(l[i].N) == n {
		return l[i].Cost
	}
	return Never
}

// Most returns the largest number of units, -1 for an empty line.
func (l Line) Most() int {
	if len(l) == 0 {
		return -1
	}
	return int(l[len(l)-1].N)
}

// Cap cuts the line, which is not exact, at n units.
func (l Line) Cap(n int) Line {
	i := l.From(n)
	if i == len(l) {
		return l
	}
	cut := append(make(Line, 0, i+1), l[:i]...)
	return append(cut, Point{int32(n), l[i].Cost})
}
