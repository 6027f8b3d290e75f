// Package foresight says when a job ends, by what its trainer reports and by what such reports have been worth. Reservations and backfill
// rest on it, so a trainer that says "in five seconds" for ever must not be believed for ever.
package foresight

import (
	"math"
	"time"
)

const (
	// halfLife is after how long what a trainer's reports did earlier counts for half. Reports come every half minute: some twenty of them.
	halfLife = 10 * time.Minute
	// utmost is by how much at most the time that a trainer says is left is stretched. It is reached by one that has said the same
	// for two hours (twelve half-lives).
	utmost = 4096
)

// Report is what a trainer said at an instant: when the job ends.
type Report struct{ At, End time.Time }

// Track is what the reports of one run have been worth so far. It begins with the first report; the zero value is of no use.
type Track struct {
	last Report
	// slip is the share of time by which the end moved away: 0 for an end that stays where it is, 1 for one that is always as far as
	// it was, below 0 for one that comes nearer than time passes. It leaves out what was thought before the first report, of which
	// prior is the weight.
	slip, prior float64
}

// Begin starts a track with the first report of a run.
func Begin(first Report) Track { return Track{last: first, prior: 1} }

// Then takes in the next report. One that is not newer than the last says nothing.
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

// End is when the job ends, if its reports go on as they did. Before that shows, factor counts: how much longer jobs like it took than
// they said first (Record.Factor).
//
// With a slip of s, each second that passes brings the reported end nearer by 1-s seconds only, so what is left takes 1/(1-s) times as
// long as it says.
func (t Track) End(factor float64) time.Time {
	slip := t.prior*(1-1/factor) + t.slip
	stretch := min(1/max(1-slip, 1.0/utmost), utmost)
	left := t.last.End.Sub(t.last.At).Seconds() * stretch
	// What nobody lives to see is no instant that others could read.
	const century = 100 * 365 * 24 * time.Hour
	return t.last.At.Add(time.Duration(min(left, century.Seconds()) * float64(time.Second)))
}
