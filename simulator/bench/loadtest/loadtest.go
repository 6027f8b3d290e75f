package loadtest

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
)

// Field is a cluster in which is measured.
type Field struct {
	// Dynamic creates and changes; its rate is the test's.
	Dynamic dynamic.Interface
	// Metadata watches pods.
	Metadata metadata.Interface
	// Usage returns the controller's resource usage so far.
	Usage func(context.Context) (Usage, error)
	// Replace ends the controller and starts it again. It returns when the next process is ready.
	Replace func(context.Context) error
	Clock   clock.PassiveClock
	// Pause is the time without a reconciliation of a TrainJob after which the controller counts as idle.
	Pause time.Duration
	// Progress receives each result as one line.
	Progress func(string)
}

// Result holds the times of one load test, in seconds from the first call that creates or resumes; zero for those that were
// not waited for.
type Result struct {
	Jobs    int    `json:"jobs"`
	Gang    string `json:"gang"`
	Suspend bool   `json:"suspend"`
	// Created is the time at which the API server had all jobs, JobSets that at which each job had its JobSet, Pods
	// that at which each had its pod (of jobs that were not created suspended).
	Created float64 `json:"created_seconds"`
	JobSets float64 `json:"jobsets_seconds"`
	Pods    float64 `json:"pods_seconds,omitempty"`
	// Resumed is the time at which each JobSet was resumed, ResumedPods that at which each job had its pod, both from
	// the first resumption.
	Resumed     float64 `json:"resumed_seconds,omitempty"`
	ResumedPods float64 `json:"resumed_pods_seconds,omitempty"`
	// Making is the controller's usage until it had nothing to do after the creation, Resuming after the resumption.
	Making   Usage  `json:"making"`
	Resuming *Usage `json:"resuming,omitempty"`
}

// Run creates jobs at once in a namespace where there are none, and if they were suspended resumes them at once later.
func (f Field) Run(ctx context.Context, order Order) (Result, error) {
	result := Result{Jobs: order.Count, Gang: order.Gang, Suspend: order.Suspend}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counts, err := f.follow(ctx, order.Namespace, order.Count)
	if err != nil {
		return result, err
	}
	before, err := f.quiet(ctx)
	if err != nil {
		return result, err
	}
	start := f.Clock.Now()
	if err := f.create(ctx, order); err != nil {
		return result, err
	}
	result.Created = f.Clock.Since(start).Seconds()
	if result.JobSets, err = f.since(ctx, start, counts.made, "JobSets"); err != nil {
		return result, err
	}
	if !order.Suspend {
		if result.Pods, err = f.since(ctx, start, counts.pods, "pods"); err != nil {
			return result, err
		}
	}
	after, err := f.quiet(ctx)
	if err != nil {
		return result, err
	}
	result.Making = after.Since(before)
	if !order.Suspend {
		return result, nil
	}
	return f.goOn(ctx, order, counts, after, result)
}

// goOn resumes the jobs.
func (f Field) goOn(ctx context.Context, order Order, counts tallies, before Usage, result Result) (Result, error) {
	start := f.Clock.Now()
	err := f.resume(ctx, order)
	if err != nil {
		return result, err
	}
	if result.Resumed, err = f.since(ctx, start, counts.running, "resumed JobSets"); err != nil {
		return result, err
	}
	if result.ResumedPods, err = f.since(ctx, start, counts.pods, "pods"); err != nil {
		return result, err
	}
	after, err := f.quiet(ctx)
	if err != nil {
		return result, err
	}
	result.Resuming = new(after.Since(before))
	return result, nil
}

func (f Field) since(ctx context.Context, start time.Time, count *tally, what string) (float64, error) {
	at, err := count.wait(ctx, what)
	if err != nil {
		return 0, err
	}
	took := at.Sub(start).Seconds()
	f.Progress(fmt.Sprintf("%d %s: %.1f s", count.wanted, what, took))
	return took, nil
}

// Cost is the cost of reconciling a job while many exist.
type Cost struct {
	// Jobs is the number of suspended jobs.
	Jobs int `json:"jobs"`
	// Usage is the controller's while it reconciled some of them without a change.
	Usage Usage `json:"usage"`
}

// Costs creates the given numbers of suspended jobs, each on top of the one before, and measures at each the cost of
// reconciling probes of them rounds times.
func (f Field) Costs(ctx context.Context, order Order, sizes []int, probes, rounds int) ([]Cost, error) {
	var costs []Cost
	for _, size := range sizes {
		order.First += order.Count
		order.Count = size - order.First
		if err := f.grow(ctx, order, size); err != nil {
			return costs, err
		}
		before, err := f.quiet(ctx)
		if err != nil {
			return costs, err
		}
		probe := Order{Namespace: order.Namespace, Count: probes}
		for round := range rounds {
			if err := f.touch(ctx, probe, size+round); err != nil {
				return costs, err
			}
		}
		after, err := f.quiet(ctx)
		if err != nil {
			return costs, err
		}
		cost := Cost{Jobs: size, Usage: after.Since(before)}
		f.Progress(fmt.Sprintf("%d jobs exist: %.2f ms of CPU per reconcile", size, cost.CPUMillis()))
		costs = append(costs, cost)
	}
	return costs, nil
}

// grow creates jobs and waits until all that there are have a JobSet.
func (f Field) grow(ctx context.Context, order Order, all int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counts, err := f.follow(ctx, order.Namespace, all)
	if err != nil {
		return err
	}
	if err := f.create(ctx, order); err != nil {
		return err
	}
	_, err = counts.made.wait(ctx, "JobSets")
	return err
}

// CPUMillis is processor time per reconcile, in milliseconds.
func (c Cost) CPUMillis() float64 { return 1000 * ratio(c.Usage.CPU, c.Usage.Reconciles) }

// Millis returns the time of a reconcile, in milliseconds.
func (c Cost) Millis() float64 { return 1000 * ratio(c.Usage.Seconds, c.Usage.Reconciles) }

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}
