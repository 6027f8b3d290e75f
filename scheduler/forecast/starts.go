package forecast

import (
	"math/bits"
	"slices"
)

// Interval predicts the wait until a start, in seconds.
type Interval struct {
	// Nine in ten waits exceed Low, one in two exceeds Middle, one in ten exceeds High.
	Low, Middle, High int64
}

// Starts corrects told waits by what earlier ones were wrong by, so that intervals hold as often as they say. Three bounds are shifted, each for itself: a wait
// beyond a bound moves it outwards, any other moves it inwards, in steps whose ratio is that of the chances. In the long run each bound is passed as often
// as it should be, whatever the waits are and however late they are known: the sum of the steps is bounded (quantile tracking: Angelopoulos, Candès and
// Tibshirani, "Conformal PID Control for Time Series Prediction", NeurIPS 2023, proposition 1). Steps are in logarithms of time, since long waits are wrong by
// more. It is not safe for concurrent use.
type Starts struct {
	// shifts are those of the low, the middle and the high bound, by class of the wait.
	shifts [waitClasses][3]int64
}

const (
	// waitClasses are the classes of told waits, of two octaves each.
	waitClasses = 12
	// octave is the unit of shifts: 256 are a factor of two.
	octave = 256
	// step moves a bound for each tenth of chance, in parts of an octave.
	step = 3
	// mostShift bounds shifts: 16 octaves.
	mostShift = 16 * octave
	// least is added to waits, in seconds: what is shorter is no different.
	least = 60
)

// Told is a predicted interval and the class of its wait, from which Started learns.
type Told struct {
	Interval

	class int
}

// Tell predicts the interval of a wait from samples of it: at least one, in seconds, ascending.
func (s *Starts) Tell(samples []int64) Told {
	bounds := [3]int64{samples[0], samples[len(samples)/2], samples[len(samples)-1]}
	out := Told{class: min(int(logOf(bounds[1])-logOf(0))/(2*octave), waitClasses-1)}
	for i := range bounds {
		bounds[i] = waitOf(logOf(bounds[i]) + s.shifts[out.class][i])
	}
	slices.Sort(bounds[:])
	out.Interval = Interval{bounds[0], bounds[1], bounds[2]}
	return out
}

// Started corrects the bounds by the seconds that a predicted wait really took.
func (s *Starts) Started(told Told, waited int64) {
	shifts := &s.shifts[told.class]
	for i, of := range [3]struct{ bound, below, above int64 }{
		{told.Low, 9, 1}, {told.Middle, 5, 5}, {told.High, 1, 9},
	} {
		move := -of.below * step
		if waited > of.bound {
			move = of.above * step
		}
		shifts[i] = min(max(shifts[i]+move, -mostShift), mostShift)
	}
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
