package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/lockstep-project/lockstep/simulator/bench/reportload"
)

const (
	// checkpointing is the time between two checkpoints of a job.
	checkpointing = 5 * time.Minute
	// believing bounds the time until each job is trusted, and settling the controller's work before a round.
	believing, settling = 15 * time.Minute, 10 * time.Minute
	// settled is the time without a reconciliation of any TrainJob after which the controller has nothing to do.
	settled = 3 * time.Second
)

// round lets all jobs report at once to a controller that knows none of them, measures the time until it trusts all of
// them and its work from then on, and ends with a graceful stop of the controller.
func (s *stage) round(parent context.Context) (reportload.Result, error) {
	result := reportload.Result{Jobs: len(s.reporters), Fresh: s.fresh}
	if _, err := s.restart(parent); err != nil {
		return result, err
	}
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	shown := reportload.NewShown(s.clock)
	go func() {
		if err := shown.Follow(ctx, s.dynamic, namespace); err != nil {
			cancel(err)
		}
	}()
	var answers reportload.Answers
	end := s.load(ctx, &answers, shown)
	defer end()
	if err := s.believe(ctx, &answers, shown, &result); err != nil {
		return result, errors.Join(err, context.Cause(ctx))
	}
	if err := s.observe(ctx, &answers, shown, &result); err != nil {
		return result, err
	}
	end()
	result.Behind = shown.Counts().Behind
	var err error
	if result.Replaced, err = s.restart(ctx); err != nil {
		return result, err
	}
	if err := shown.Refresh(ctx, s.dynamic, namespace); err != nil {
		return result, err
	}
	counts := shown.Counts()
	result.Lost, result.Backwards = counts.Behind, counts.Backwards
	return result, context.Cause(ctx)
}

// load lets all jobs report until the returned function is called.
func (s *stage) load(ctx context.Context, answers *reportload.Answers, shown *reportload.Shown) (end func()) {
	loading, stop := context.WithCancel(ctx)
	load := reportload.Load{
		Every: s.every, Checkpoint: checkpointing, Fresh: s.fresh, Roots: s.roots, Clock: s.clock, Sent: shown.Accept,
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		load.Run(loading, s.reporters, answers)
	}()
	return func() {
		stop()
		<-ended
	}
}

// believe waits until a report of each job was accepted.
func (s *stage) believe(
	ctx context.Context, answers *reportload.Answers, shown *reportload.Shown, result *reportload.Result,
) error {
	const glance = 100 * time.Millisecond
	began := s.clock.Now()
	err := wait.PollUntilContextTimeout(ctx, glance, believing, true, func(context.Context) (bool, error) {
		return shown.Counts().Accepted == len(s.reporters), nil
	})
	if err != nil {
		return fmt.Errorf("waiting until all jobs are believed: %w", err)
	}
	result.Believed = s.clock.Since(began).Seconds()
	codes, _ := answers.Reset()
	result.Refused = codes[http.StatusTooManyRequests]
	s.say("%d jobs believed after %.0f s; answers until then: %v", len(s.reporters), result.Believed, codes)
	return nil
}

// observe measures for a while.
func (s *stage) observe(
	ctx context.Context, answers *reportload.Answers, shown *reportload.Shown, result *reportload.Result,
) error {
	// The work that the first reports left is not part of it: each job has been written once after this.
	select {
	case <-s.clock.After(warmup):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	answers.Reset()
	before, err := s.usage(ctx)
	if err != nil {
		return err
	}
	cores, began := s.processors(), s.clock.Now()
	var ages []time.Duration
	for ctx.Err() == nil && s.clock.Since(began) < s.lasting {
		s.clock.Sleep(time.Second)
		ages = append(ages, shown.Ages()...)
	}
	result.Seconds = s.clock.Since(began).Seconds()
	codes, took := answers.Reset()
	after, err := s.usage(ctx)
	if err != nil {
		return err
	}
	used := after.Since(before)
	result.Codes, result.Writes, result.Calls = codes, used.Reports, used.Total()
	result.Reconciles, result.MemoryMB = used.Reconciles, used.Memory/(1<<20)
	if used.Reconciles > 0 {
		result.ReconcileMilliseconds = 1000 * used.Seconds / used.Reconciles
	}
	result.Cores = cores.since(s.processors(), result.Seconds)
	result.SetLatencies(took)
	result.SetAges(ages)
	return nil
}

// warmup is the longest wait of a report.
const warmup = 35 * time.Second

// restart stops the controller gracefully, starts it again, and waits until it has nothing to do. It returns the
// seconds until the next one was ready.
func (s *stage) restart(ctx context.Context) (replaced float64, err error) {
	began := s.clock.Now()
	if err := s.cluster.RestartController(ctx); err != nil {
		return 0, err
	}
	replaced = s.clock.Since(began).Seconds()
	last := -1.0
	err = wait.PollUntilContextTimeout(ctx, settled, settling, true, func(ctx context.Context) (bool, error) {
		now, err := s.usage(ctx)
		still := now.Reconciles == last
		last = now.Reconciles
		return still, err
	})
	if err != nil {
		return 0, fmt.Errorf("waiting until the controller has nothing to do: %w", err)
	}
	return replaced, nil
}
