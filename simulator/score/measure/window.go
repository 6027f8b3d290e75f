package measure

import (
	"time"

	"github.com/lockstep-project/lockstep/simulator/inputs/scenario"
)

// leastJobs is the number of jobs that a trace needs for a beginning that can be left out.
const leastJobs = 100

// warmUp is the part of the submissions that is left out, as one in so many; no single instant may have more of them.
const warmUp = 10

// window is the part of the run that job metrics and means over time are of.
type window struct {
	// first is the first job of it; those after it are all in it.
	first int
	// from and to bound it; to is scenario.Forever if it ends with the run.
	from, to time.Duration
	rule     string
}

// newWindow leaves the first tenth of the submissions out, while the fleet fills, and everything after the last one,
// while it runs empty. A trace of fewer than 100 jobs, or with more than a tenth of them at one instant, is no stream
// that a cluster is ever in the middle of: of such, everything counts.
func newWindow(jobs []scenario.Job) window {
	n := len(jobs)
	w := window{to: scenario.Forever}
	if n > 0 {
		w.from = jobs[0].Submit
	}
	switch {
	case n < leastJobs:
		w.rule = "all of the run, because fewer than 100 jobs come"
	case crowd(jobs) > n/warmUp:
		w.rule = "all of the run, because more than a tenth of the jobs come at one instant"
	default:
		w.first = n / warmUp
		w.from, w.to = jobs[w.first].Submit, jobs[n-1].Submit
		w.rule = "from the first tenth of the submissions to the last one"
	}
	return w
}

// FirstCounted returns the index of the first job whose times the scorecard counts; it counts those of all jobs after
// it.
func FirstCounted(jobs []scenario.Job) int { return newWindow(jobs).first }

// crowd returns the largest number of jobs that arrive at one instant.
func crowd(jobs []scenario.Job) int {
	most, run := 0, 0
	for i := range jobs {
		if i > 0 && jobs[i].Submit != jobs[i-1].Submit {
			run = 0
		}
		run++
		most = max(most, run)
	}
	return most
}

// holds reports whether the instant is in it.
func (w window) holds(at time.Duration) bool { return at >= w.from && at <= w.to }

// overlap returns the part of the time between two instants that is in it, in seconds.
func (w window) overlap(from, to time.Duration) float64 {
	return max(min(to, w.to)-max(from, w.from), 0).Seconds()
}
