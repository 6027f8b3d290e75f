package topology

import "math"

// Capacity is what a node has left or a member takes: one non-negative number per resource, in the order that the
// caller chose for all of them. A number that is not there is zero.
type Capacity []int64

// most is the largest number of members that a node is said to hold, so that sums over any fleet stay exact.
const most = math.MaxInt32

// times returns how many times the demand fits, at most the limit.
func (c Capacity) times(demand Capacity, limit int) int {
	n := int64(limit)
	for r, d := range demand {
		if d <= 0 {
			continue
		}
		if r >= len(c) || c[r] < d {
			return 0
		}
		n = min(n, c[r]/d)
	}
	return int(n)
}

// less returns what is left of c after count members took the demand.
func (c Capacity) less(demand Capacity, count int) Capacity {
	left := append(Capacity(nil), c...)
	for r, d := range demand {
		if r < len(left) {
			left[r] -= d * int64(count)
		}
	}
	return left
}
