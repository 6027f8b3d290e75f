package liverun

import (
	"context"
	"time"

	"github.com/lockstep-project/lockstep/simulator/live/summary"
)

// step is the interval at which the state of the jobs is checked; the watches keep it current in between.
const step = 200 * time.Millisecond

// lineWidth is the longest progress line; many jobs are counted by phase instead of named.
const lineWidth = 150

// Run follows the jobs until each has ended, or stays unplaced although nothing else is running, and returns them as
// last seen together with the ledger of their ranks. When ctx ends it returns its observations so far, and ctx's error.
func Run(ctx context.Context, jobs []summary.JobObservation, options Options) (*summary.Ledger, error) {
	watching, stop := context.WithCancel(ctx)
	defer stop()
	f, err := follow(watching, options)
	if err != nil {
		return nil, err
	}
	ticker := options.Clock.NewTicker(step)
	defer ticker.Stop()
	shown := ""
	quietSince := options.Clock.Now()
	for {
		f.refresh(jobs)
		progress := make([]summary.Progress, len(jobs))
		for i, job := range jobs {
			progress[i] = f.ledger.Progress(job)
		}
		if !idle(progress) { // patience begins when nothing runs any more
			quietSince = options.Clock.Now()
		}
		if line := summary.ProgressLine(progress, lineWidth); line != shown {
			shown = line
			quietSince = options.Clock.Now()
			options.Progress(line)
		}
		if finished(progress) || options.Clock.Since(quietSince) >= options.Patience {
			return f.ledger, nil
		}
		select {
		case <-ctx.Done():
			return f.ledger, context.Cause(ctx)
		case <-ticker.C():
		}
	}
}

// finished reports whether every job has ended.
func finished(jobs []summary.Progress) bool {
	for _, job := range jobs {
		if job.Outcome == "" {
			return false
		}
	}
	return true
}

// idle reports whether no job that has not ended is running, even only in part (an initializer, or the first of a job
// without a gang), or about to run as a whole: then nothing is going to make room for those that wait. A job that runs
// is never given up for being slow.
func idle(jobs []summary.Progress) bool {
	for _, job := range jobs {
		whole := job.Placed > 0 && job.Placed == job.Members
		if job.Outcome == "" && (job.Running > 0 || whole) {
			return false
		}
	}
	return true
}
