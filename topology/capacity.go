package topology

import "math"

// Capacity is the room left on a node or the demand of a member: A number that is not there is zero.
type Capacity []int64

// unlimited is the number of members of a node that no rule limits: small enough that sums over any fleet stay exact.
const unlimited = math.MaxInt32

// times returns the number of times that the demand fits, at most the limit.
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

// less returns the rest of c after count members took the demand.
func (c Capacity) less(demand Capacity, count int) Capacity {
	left := append(Capacity(nil), c...)
	for r, d := range demand {
		if r < len(left) {
			left[r] -= d * int64(count)
		}
	}
	return left
}
