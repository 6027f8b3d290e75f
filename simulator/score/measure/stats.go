package measure

import (
	"math"
	"slices"
	"strconv"
)

// Tidy rounds to twelve digits. Machines differ in the last bits of a sum (some fuse multiplication and addition) and
// of a logarithm; scorecards may not.
func Tidy(x float64) float64 {
	const digits = 12
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', digits, 64), 64)
	if err != nil {
		return x // it was a number when it was written
	}
	return rounded
}

// ratio is a/b, 0 if there is nothing to divide by.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return Tidy(a / b)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return ratio(sum, float64(len(values)))
}

// percentile is the nearest rank: the smallest of the sorted values that at least as many per cent do not exceed; 0 of
// none.
func percentile(sorted []float64, percent int) float64 {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*percent + 99) / 100
	return Tidy(sorted[max(rank, 1)-1])
}

// times sums durations up; it sorts them.
func times(seconds []float64) Times {
	slices.Sort(seconds)
	return Times{
		Mean: mean(seconds), P50: percentile(seconds, 50), P95: percentile(seconds, 95),
		P99: percentile(seconds, 99), Max: percentile(seconds, 100),
	}
}

// slowdown sums slowdowns up; it sorts them.
func slowdown(values []float64) Slowdown {
	slices.Sort(values)
	logs := 0.0
	for _, v := range values {
		logs += math.Log(v)
	}
	s := Slowdown{Mean: mean(values), P95: percentile(values, 95)}
	if n := len(values); n > 0 {
		s.GeometricMean = Tidy(math.Exp(logs / float64(n)))
	}
	return s
}

// weighted is a mean in which values count by their weights.
type weighted struct{ sum, weight float64 }

func (w *weighted) add(value, weight float64) {
	// The conversion prevents the product from being fused with the sum.
	w.sum += float64(value * weight)
	w.weight += weight
}

func (w *weighted) mean() float64 { return ratio(w.sum, w.weight) }
