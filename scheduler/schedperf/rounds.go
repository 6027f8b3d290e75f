package schedperf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"k8s.io/utils/clock"
)

// Rounds configures the repetition of workloads. In each round every workload is run with both profiles, one after the
// other.
type Rounds struct {
	// Count is the number of rounds. From the second on, a workload whose two runs would not end within Budget, judging
	// by their last durations, is left out.
	Count  int
	Budget time.Duration
	Clock  clock.PassiveClock
	// Measure runs a workload once.
	Measure func(ctx context.Context, w Workload, profile Profile, round int) (Figures, error)
	// Progress gets one line per run.
	Progress io.Writer
}

// series holds the results of one workload.
type series struct {
	runs   map[Profile][]Figures
	failed map[Profile]bool
	// took is the duration of the last pair of runs.
	took time.Duration
}

func profiles() []Profile { return []Profile{Native, Lockstep} }

// Run returns a record for each workload and profile with at least one run, in the order of the workloads. A run that
// failed once is not repeated; the errors are returned joined, also ctx's.
func (r Rounds) Run(ctx context.Context, workloads []Workload) ([]Record, error) {
	end := r.Clock.Now().Add(r.Budget)
	all := make([]series, len(workloads))
	var failed error
	for round := 1; round <= r.Count; round++ {
		for i, w := range workloads {
			began := r.Clock.Now()
			if round == 1 {
				all[i] = series{runs: make(map[Profile][]Figures), failed: make(map[Profile]bool)}
			} else if began.Add(all[i].took).After(end) {
				r.report("%s, round %d: left out, the time is up", w, round)
				continue
			}
			failed = errors.Join(failed, r.pair(ctx, w, round, all[i]))
			all[i].took = r.Clock.Since(began)
		}
	}
	var records []Record
	for i, w := range workloads {
		for _, profile := range profiles() {
			if runs := all[i].runs[profile]; len(runs) > 0 {
				records = append(records, Record{w.String(), profile, Median(runs), len(runs)})
			}
		}
	}
	return records, errors.Join(failed, ctx.Err())
}

func (r Rounds) pair(ctx context.Context, w Workload, round int, s series) error {
	var failed error
	for _, profile := range profiles() {
		if s.failed[profile] || ctx.Err() != nil {
			continue
		}
		figures, err := r.Measure(ctx, w, profile, round)
		if err != nil {
			s.failed[profile] = true
			r.report("%s, %s, round %d: failed", w, profile, round)
			failed = errors.Join(failed, fmt.Errorf("%s, %s, round %d: %w", w, profile, round, err))
			continue
		}
		s.runs[profile] = append(s.runs[profile], figures)
		r.report(
			"%s, %s, round %d: %.1f pods/s, %.0f s, %.0f attempts of %.1f ms, scheduler CPU %.2f ms a pod",
			w,
			profile,
			round,
			figures.PodsPerSecond,
			figures.Seconds,
			figures.Attempts,
			figures.AttemptMean,
			figures.SchedulerCPUPerPod,
		)
	}
	return failed
}

func (r Rounds) report(format string, args ...any) {
	_, _ = fmt.Fprintf(r.Progress, format+"\n", args...) // no reader is left
}
