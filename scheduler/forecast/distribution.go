package forecast

// Run times are counted in buckets of a quarter of an octave, from one second to about 136 years.
const (
	perOctave = 4
	octaves   = 32
	buckets   = perOctave * octaves
)

// one is the weight of a run that has just ended.
const one = 1 << 16

// Distribution counts run times by bucket, in parts of a run.
type Distribution [buckets]int64

// lower returns the shortest run time of a bucket in parts of 2¹⁶ seconds.
func lower(bucket int) int64 {
	steps := [perOctave]int64{65536, 77936, 92682, 110218} // 1, 2^¼, 2^½ and 2^¾
	return steps[bucket%perOctave] << (bucket / perOctave)
}

// bucketOf returns the bucket of a run time in seconds.
func bucketOf(seconds int64) int {
	scaled := min(max(seconds, 1), 1<<(octaves-1)) << 16
	low, high := 0, buckets-1
	for low < high {
		if middle := (low + high + 1) / 2; lower(middle) <= scaled {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

// sum returns the weight of all runs.
func (d *Distribution) sum() int64 {
	var sum int64
	for _, n := range d {
		sum += n
	}
	return sum
}

// halving is the number of runs after which a count has lost half its weight, divided by ln 2.
const halving = 92

// add counts a run, and lets all others fade.
func (d *Distribution) add(seconds int64) {
	for i := range d {
		d[i] -= d[i] / halving
	}
	d[bucketOf(seconds)] += one
}

// over returns the distribution with the counts of a broader one, as the weight of priorRuns.
func (d *Distribution) over(broader *Distribution) Distribution {
	out := *d
	if all := broader.sum(); all > 0 {
		for i, n := range broader {
			out[i] += n * priorRuns / all
		}
	}
	return out
}

// perMille is the denominator of Quantile's argument.
const perMille = 1000

// Quantile returns the run time in seconds that so many in a thousand of the runs do not exceed, of those that take
// longer than they have run already; false if no run did.
func (d *Distribution) Quantile(of, ran int64) (int64, bool) {
	from := ran << 16
	longer := func(i int) int64 { // the part of a bucket that is longer
		low, high := lower(i), lower(i+1)
		switch {
		case high <= from:
			return 0
		case low >= from:
			return d[i]
		}
		return d[i] * ((high - from) >> 8) / ((high - low) >> 8)
	}
	var all int64
	for i := range d {
		all += longer(i)
	}
	if all == 0 {
		return 0, false
	}
	want, below := (all*of+perMille-1)/perMille, int64(0)
	for i := range d {
		n := longer(i)
		if n > 0 && below+n >= want {
			low, high := max(lower(i), from), lower(i+1)
			return max((low+((high-low)>>8)*(want-below)/n<<8+1<<15)>>16, ran+1), true
		}
		below += n
	}
	return 0, false
}
