// Package foresight estimates the end of a job from its trainer's reports and from the accuracy of such reports in the
// past. Reservations and backfill depend on it, so a trainer that reports "in five seconds" for ever must not be
// believed for ever.
package foresight

import (
	"math"
	"time"
)

const (
	// halfLife is the time after which the earlier behavior of a trainer's reports counts for half. Reports arrive
	// every half minute: some twenty of them.
	halfLife = 10 * time.Minute
	// utmost is the greatest factor by which the remaining time of a report is stretched. A trainer that has reported
	// the same for two hours (twelve half-lives) reaches it.
	utmost = 4096
)

// Report is a trainer's forecast of the job's end, made at an instant.
type Report struct{ At, End time.Time }

// Track holds the accuracy of the reports of one run so far. It begins with the first report; the zero value is of no
// use.
type Track struct {
	last Report
	// slip is the share of time by which the end moved away: 0 for an end that does not move, 1 for one that is always
	// as far as it was, below 0 for one that approaches faster than time passes. It leaves out the assumption before
	// the first report; prior is the weight of that.
	slip, prior float64
}

// Begin starts a track with the first report of a run.
func Begin(first Report) Track { return Track{last: first, prior: 1} }

// Then adds the next report. A report that is not newer than the last is ignored.
func (t Track) Then(next Report) Track {
	passed := next.At.Sub(t.last.At)
	if passed <= 0 {
		return t
	}
	moved := next.End.Sub(t.last.End).Seconds() / passed.Seconds()
	kept := math.Exp2(-passed.Seconds() / halfLife.Seconds())
	return Track{
		last:  next,
		slip:  kept*t.slip + (1-kept)*min(max(moved, -1), 1),
		prior: kept * t.prior,
	}
}

// End returns the time at which the job ends, if its reports continue as before. While there are too few reports to
// show that, factor counts: the ratio of actual to first reported run times of jobs like it (Record.Factor).
//
// With a slip of s, each second that passes brings the reported end nearer by 1-s seconds only, so the remaining time
// is 1/(1-s) times the reported one.
func (t Track) End(factor float64) time.Time {
	slip := t.prior*(1-1/factor) + t.slip
	stretch := min(1/max(1-slip, 1.0/utmost), utmost)
	left := t.last.End.Sub(t.last.At).Seconds() * stretch
	// An end beyond a century is not an instant that other programs could parse.
	const century = 100 * 365 * 24 * time.Hour
	return t.last.At.Add(time.Duration(min(left, century.Seconds()) * float64(time.Second)))
}
