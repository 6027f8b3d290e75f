package loadtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Restart holds the times of a restart of the controller while many suspended jobs exist, in seconds from asking the
// earlier process to end.
type Restart struct {
	// Jobs is the number of suspended jobs.
	Jobs int `json:"jobs"`
	// Ready is the time at which the next process was ready, NewJob that at which a job that was created then had its
	// JobSet, and Seen that at which each job had been reconciled.
	Ready  float64 `json:"ready_seconds"`
	NewJob float64 `json:"new_job_seconds"`
	Seen   float64 `json:"seen_seconds"`
	// Usage is that of the next process until it had nothing to do, the new job included.
	Usage Usage `json:"usage"`
}

// Restarts makes the numbers of suspended jobs given, each on top of the one before, and at each restarts the
// controller and creates one more. The error says also which restarts took too much; all are measured.
func (f Field) Restarts(ctx context.Context, order Order, sizes []int) ([]Restart, error) {
	var restarts []Restart
	var faults []error
	for _, size := range sizes {
		order.First += order.Count
		order.Count = size - order.First
		if err := f.grow(ctx, order, size); err != nil {
			return restarts, err
		}
		if _, err := f.quiet(ctx); err != nil {
			return restarts, err
		}
		order.First += order.Count
		order.Count = 1
		restart, err := f.restart(ctx, order, size)
		if err != nil {
			return restarts, err
		}
		f.Progress(
			fmt.Sprintf(
				"restart with %d jobs: ready after %.1f s, a new job's JobSet after %.1f s, %.2f API calls a job",
				size,
				restart.Ready,
				restart.NewJob,
				restart.CallsPerJob(),
			),
		)
		restarts, faults = append(restarts, restart), append(faults, restart.Judge())
	}
	return restarts, errors.Join(faults...)
}

// restart restarts the controller while jobs exist, and creates the one job of an order when it is ready.
func (f Field) restart(ctx context.Context, order Order, jobs int) (Restart, error) {
	result := Restart{Jobs: jobs}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counts, err := f.follow(ctx, order.Namespace, jobs+order.Count)
	if err != nil {
		return result, err
	}
	start := f.Clock.Now()
	if err := f.Replace(ctx); err != nil {
		return result, err
	}
	result.Ready = f.Clock.Since(start).Seconds()
	if err := f.create(ctx, order); err != nil {
		return result, err
	}
	if result.NewJob, err = f.since(ctx, start, counts.made, "JobSets"); err != nil {
		return result, err
	}
	if err := f.seen(ctx, jobs); err != nil {
		return result, err
	}
	result.Seen = f.Clock.Since(start).Seconds()
	result.Usage, err = f.quiet(ctx)
	return result, err
}

// seen waits until a controller that has just started has looked so often at a TrainJob.
func (f Field) seen(ctx context.Context, looks int) error {
	err := wait.PollUntilContextTimeout(ctx, f.Pause/10, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		now, err := f.Usage(ctx)
		return now.Reconciles >= float64(looks), err
	})
	if err != nil {
		return fmt.Errorf("waiting until the controller has looked at %d jobs: %w", looks, err)
	}
	return nil
}

// CallsPerJob returns the number of calls to the API server for each job, those made once for all of them included.
func (r Restart) CallsPerJob() float64 { return ratio(r.Usage.Total(), float64(r.Jobs)) }

// The bounds of a restart, at any number of jobs: so many were measured with 10,000 (controller/BENCH.md), where all
// that is called once for each job would be seen.
const (
	// mostReady is the longest time until the next process is ready, in seconds.
	mostReady = 10.0
	// mostCalls is the largest number of its calls to the API server for each job.
	mostCalls = 1.0
)

// errSlowRestart is the judgment of a restart that took too much.
var errSlowRestart = errors.New("the restart took too much")

// Judge returns why a restart took too much; nil if it did not.
func (r Restart) Judge() error {
	var faults []error
	if r.Ready > mostReady {
		faults = append(faults, fmt.Errorf("%w: with %d jobs the controller was ready after %.1f s; at most %.0f",
			errSlowRestart, r.Jobs, r.Ready, mostReady))
	}
	if calls := r.CallsPerJob(); calls > mostCalls {
		faults = append(
			faults,
			fmt.Errorf("%w: with %d jobs it called the API server %.2f times for each; at most %.0f",
				errSlowRestart, r.Jobs, calls, mostCalls),
		)
	}
	return errors.Join(faults...)
}
