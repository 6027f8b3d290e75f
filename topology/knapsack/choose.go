package knapsack

import "slices"

// Share is the content of one part: units, and a layer.
type Share struct{ Units, Layer int }

// Choose returns the share of one part of a whole that is to cost the least it can: nothing if that is possible, else
// as many units as possible. Of 5 units among parts of 4, 3 and 2 at 100 each the first holds 0, since the others hold
// 5 for 200, too; the second then has to hold 3. all is the joint offer of the part and the others, rest that of the
// others.
func (m *Mixer) Choose(part, all, rest ParetoFront, whole Share) Share {
	cost := m.At(all[whole.Layer], whole.Units)
	best := Share{Units: -1}
	m.layers.Splits(whole.Layer, func(e, f int) {
		costs := func(n int) bool { return sum(m.At(part[e], n), m.At(rest[f], whole.Units-n)) == cost }
		switch {
		case best.Units == 0:
			return
		case costs(0):
			best = Share{0, e}
			return
		}
		for _, p := range slices.Backward(part[e]) {
			n := min(int(p.N), whole.Units)
			if n <= best.Units {
				return
			}
			if costs(n) {
				best = Share{n, e}
				return
			}
		}
	})
	best.Units = max(best.Units, 0)
	return best
}

// sum adds costs.
func sum(a, b int64) int64 {
	if a == Never || b == Never {
		return Never
	}
	return a + b
}
