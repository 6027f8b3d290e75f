// Package failover measures the time without a binding when the leader of two lockstep-schedulers is asked to stop, is
// killed, or gets no answer, while gangs start and end on an embedded cluster.
package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/live/cluster"
)

// Plan holds the load and the measured rounds. All gangs have four members.
type Plan struct {
	// Running counts the gangs that run all the time, Waiting those that fit nowhere.
	Running, Waiting int
	// Every is the time between two gangs, which run for five seconds and are deleted.
	Every time.Duration
	// Rounds counts the repetitions of each event.
	Rounds int
	// Tries limits the repetitions of an event in which a silence that lasted longer than meant changed the leader, each
	// with new schedulers; 0 and 1 for none.
	Tries int
	// Settling is the undisturbed time before and after each event. A new standby must have read everything by then.
	Settling time.Duration
	// StandbyAfter is the time between the end of a leader and the start of the next standby. On a machine that all
	// share, a start slows down the scheduler that is measured.
	StandbyAfter time.Duration
	// Say receives each result as one line.
	Say func(string)
	// Clock is the wall clock.
	Clock clock.Clock
}

// Result holds the measurements of one event.
type Result struct {
	// Event names the event that the leader undergoes.
	Event string
	// Gaps are the times in which nothing was bound, ascending, one for each round.
	Gaps []time.Duration
	// Within bounds them, 0 for not at all: the first event is that nothing happens.
	Within time.Duration
}

// Median is the middle of the gaps.
func (r Result) Median() time.Duration { return r.Gaps[len(r.Gaps)/2] }

// Longest is the longest of the gaps.
func (r Result) Longest() time.Duration { return r.Gaps[len(r.Gaps)-1] }

// Measure puts two schedulers, with the shipped configuration, in place of the cluster's own, and has each event
// happen. An error is also that the leader changed although it only got no answer, or that a scheduler ended by itself.
// None of the schedulers runs afterwards.
func Measure(ctx context.Context, c *cluster.Cluster, plan Plan) ([]Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := newPair(ctx, c, plan)
	if err != nil {
		return nil, err
	}
	defer p.close(context.WithoutCancel(ctx))
	l, err := newLoad(ctx, c, plan)
	if err != nil {
		return nil, err
	}
	plan.Say(fmt.Sprintf("%d gangs run, %d wait, and another comes every %v", plan.Running, plan.Waiting, plan.Every))
	all := events()
	results := make([]Result, len(all))
	for round := range plan.Rounds {
		for i, event := range all {
			gap, err := measure(ctx, plan, p, l, event)
			if err != nil {
				return nil, fmt.Errorf("the leader %s: %w", event.name, err)
			}
			plan.Say(
				fmt.Sprintf(
					"round %d, the leader %s: nothing was bound for %.2f s",
					round+1,
					event.name,
					gap.Seconds(),
				),
			)
			results[i].Event, results[i].Within = event.name, event.within
			results[i].Gaps = append(results[i].Gaps, gap)
		}
	}
	for _, r := range results {
		slices.Sort(r.Gaps)
	}
	return results, nil
}

// measure has an event happen, and returns the longest time without a binding.
func measure(ctx context.Context, plan Plan, p *pair, l *load, event event) (time.Duration, error) {
	for try := 1; ; try++ {
		plan.Clock.Sleep(plan.Settling)
		gap, err := l.gap(ctx, plan.Settling, func() error { return event.happens(ctx, p) })
		if err == nil {
			return gap, p.allRun()
		}
		var change *changeError
		if !errors.As(err, &change) || change.excess <= MostExcess || try >= plan.Tries {
			return 0, err
		}
		plan.Say(fmt.Sprintf("the leader %s: %v; again, with new schedulers", event.name, err))
		// The stream flows again before the next event, or its gap would be part of the next one.
		if _, err := l.gap(ctx, plan.Settling, func() error { return p.restart(ctx) }); err != nil {
			return 0, err
		}
	}
}
