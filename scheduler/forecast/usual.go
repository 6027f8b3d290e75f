package forecast

// Usual holds the run times of a key, and their median. The zero value is empty.
type Usual struct {
	runs   *Distribution
	middle int64
}

// Usual returns the usual run times of a key, as of now.
func (h *History) Usual(k Key) Usual {
	u := Usual{runs: h.Of(k)}
	u.middle, _ = u.runs.Quantile(perMille/2, 0)
	return u
}

// unknownRun is the least duration in seconds of a run without a prediction.
const unknownRun = 600

// Left returns the median of the seconds that are left of a run that has run for so many: as many as it has run already
// if no earlier run took longer.
func (u Usual) Left(ran int64) int64 {
	switch {
	case u.runs == nil:
	case ran <= 0 && u.middle > 0:
		return u.middle
	default:
		if seconds, ok := u.runs.Quantile(perMille/2, ran); ok {
			return seconds - ran
		}
	}
	return max(ran, unknownRun)
}

// Quantile returns the seconds that so many in a thousand runs do not exceed, of those that take longer than they have
// run already, 0 if nothing is known.
func (u Usual) Quantile(of, ran int64) int64 {
	if u.runs == nil {
		return 0
	}
	seconds, _ := u.runs.Quantile(of, ran)
	return seconds
}
