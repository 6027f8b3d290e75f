package compare

import "math"

// Quantile returns the number of standard errors around a mean that hold it with 95 % confidence when that many degrees
// of freedom, at least 1, are left: the 97.5 % quantile of Student's t.
func Quantile(freedom int) float64 {
	const confidence = 0.95
	low, high := 0.0, 13.0 // that of one degree is 12.7, and all others are less
	for range 60 {
		if middle := (low + high) / 2; within(middle, freedom) < confidence {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// within is the probability that Student's t is between -t and t. For whole degrees of freedom that is a finite sum:
// Abramowitz and Stegun, 26.7.3 and 26.7.4.
func within(t float64, freedom int) float64 {
	angle := math.Atan(t / math.Sqrt(float64(freedom)))
	sine, cosine := math.Sincos(angle)
	// The terms are 1, 1/2 c², 1·3/(2·4) c⁴ and so on for even degrees, c, 2/3 c³, 2·4/(3·5) c⁵ and so on for odd ones.
	term, sum := 1.0, 0.0
	first := 1
	if freedom%2 == 1 {
		term, first = cosine, 2
	}
	for k := first; k <= freedom-1; k += 2 {
		sum += term
		term *= cosine * cosine * float64(k) / float64(k+1)
	}
	if freedom%2 == 1 {
		return 2 / math.Pi * (angle + sine*sum)
	}
	return sine * sum
}

// spread is the mean of some numbers and their standard deviation, 0 of a single one.
func spread(values []float64) (mean, deviation float64) {
	if len(values) == 0 {
		return 0, 0
	}
	n := float64(len(values))
	for _, v := range values {
		mean += v - values[0] // so equal numbers have no deviation at all
	}
	mean = values[0] + mean/n
	if len(values) < 2 {
		return mean, 0
	}
	squares := 0.0
	for _, v := range values {
		squares += float64((v - mean) * (v - mean)) // not fused, on any machine
	}
	return mean, math.Sqrt(squares / (n - 1))
}
