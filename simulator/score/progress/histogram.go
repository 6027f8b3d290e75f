package progress

import (
	"math/bits"
	"time"
)

// Buckets are linear within each power of two: 16 of them, so a bucket's middle is within 1/32 of its values.
const (
	bucketBits = 4
	buckets    = (63-bucketBits)<<bucketBits + 1<<bucketBits
)

// histogram counts durations.
type histogram struct {
	of    [buckets]uint64
	count uint64
}

// add counts a duration; one below 0 is 0.
func (h *histogram) add(d time.Duration) {
	h.of[bucket(d)]++
	h.count++
}

func bucket(d time.Duration) int {
	n := uint64(max(d, 0))
	if n < 1<<bucketBits {
		return int(n)
	}
	shift := bits.Len64(n) - bucketBits - 1
	return shift<<bucketBits + int(n>>shift)
}

// quantile is the middle of the bucket of the duration that q of all are not above, by nearest rank; 0 if there are
// none.
func (h *histogram) quantile(q float64) time.Duration {
	if h.count == 0 {
		return 0
	}
	rank, seen := min(uint64(q*float64(h.count)), h.count-1), uint64(0)
	for i, n := range h.of {
		if seen += n; seen > rank {
			return middle(i)
		}
	}
	return 0
}

func middle(i int) time.Duration {
	if i < 2<<bucketBits {
		return time.Duration(i)
	}
	shift := i>>bucketBits - 1
	low := uint64(i-shift<<bucketBits) << shift
	return time.Duration(low + 1<<shift/2)
}
