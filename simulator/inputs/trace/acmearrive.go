package trace

import "math/rand/v2"

// mostBatch is the largest number of evaluations that arrive at once: a benchmark has some sixty data sets.
const mostBatch = 63

// arrive draws when jobs are submitted. Of a Poisson process with so many arrivals in so many days, the arrivals are
// drawn independently of each other, each with the rate as its density.
func (a acmeTables) arrive(drafts []draft, days int64, r *rand.Rand) {
	left, at := 0, int64(0)
	for i := range drafts {
		if a.types[drafts[i].kind].name != evaluation {
			drafts[i].submit = instant(days, r)
			continue
		}
		if left == 0 {
			left, at = 1+r.IntN(mostBatch), instant(days, r)
		}
		drafts[i].submit = at
		left--
	}
}

// instant is a second of one of the days, with twice the rate from 9 to 21 o'clock.
func instant(days int64, r *rand.Rand) int64 {
	const hour, night, day = 3600, 12, 12
	h := r.Int64N(night + 2*day)
	if h >= night { // two for each hour of the day
		h = night + (h-night)/2
	}
	return (r.Int64N(days)*24+(h+21)%24)*hour + r.Int64N(hour)
}
