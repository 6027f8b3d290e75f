package forecast

import "math/bits"

// Interval predicts the wait until a start, in seconds.
type Interval struct {
	// Low and High are exceeded by nine in ten waits and by one in ten; Middle by every second.
	Low, Middle, High int64
}

// loss returns the sum of the pinball losses of the three quantiles, in thousandths of seconds.
func (v *Interval) loss(waited int64) int64 {
	var sum int64
	for _, q := range [3][2]int64{{v.Low, LowQuantile}, {v.Middle, perMille / 2}, {v.High, HighQuantile}} {
		sum += max(q[1]*(waited-q[0]), (q[1]-perMille)*(waited-q[0]))
	}
	return sum
}

// lossBy returns the loss so far of a wait that is not over: it ends after the quantiles that it has passed.
func (v *Interval) lossBy(waited int64) int64 {
	var sum int64
	for _, q := range [3][2]int64{{v.Low, LowQuantile}, {v.Middle, perMille / 2}, {v.High, HighQuantile}} {
		sum += max(q[1]*(waited-q[0]), 0)
	}
	return sum
}

// logOf returns the logarithm of a wait, in octaves of a second divided by 256.
func logOf(wait int64) int64 {
	x := uint64(min(max(wait, 0), 1<<40)) + least
	whole := bits.Len64(x) - 1
	mantissa := x << (63 - whole) >> 32 // in [2³¹, 2³²)
	out := int64(whole) * octave
	for bit := int64(octave / 2); bit > 0; bit /= 2 {
		mantissa = mantissa * mantissa >> 31
		if mantissa >= 1<<32 {
			mantissa >>= 1
			out += bit
		}
	}
	return out
}

// waitOf returns the shortest wait of a logarithm.
func waitOf(log int64) int64 {
	low, high := int64(0), int64(1)<<40
	for low < high {
		if middle := (low + high) / 2; logOf(middle) >= log {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}
