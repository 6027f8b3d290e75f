package simulation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/engine"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
	"github.com/lockstep-project/lockstep/simulator/score/bound"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/progress"
	"github.com/lockstep-project/lockstep/simulator/score/report"
	"github.com/lockstep-project/lockstep/simulator/score/results"
)

// Run is one run of the inputs.
type Run struct {
	// Scheduler and Engine are names, see schedulers.Ask.
	Scheduler, Engine string
	Seed              uint64
	// Dir is the directory of the results; empty for none.
	Dir string
	// Progress shows the run's progress; nil for none. Name is the run's, if there are several.
	Progress *progress.Progress
	Name     string
	// Wall is the clock for costs.
	Wall clock.PassiveClock
}

// Outcome is the result of a run.
type Outcome struct {
	Card measure.Scorecard
	// Jobs and Series are of gangs only: the outcome of each job, by the scenario's index, and the state of the cluster
	// over time.
	Jobs   []measure.Outcome
	Series measure.Series
	// Bounds are lower bounds for every scheduler with the same inputs; zero for openb.
	Bounds bound.Bounds
}

// Run plays the inputs once. If the context ends before, the outcome is that until then, its card is marked partial,
// and the error is the context's cause.
func (in *Input) Run(ctx context.Context, r Run) (Outcome, error) {
	if in.Shared() {
		return in.runShared(ctx, r)
	}
	chosen, err := schedulers.Open(
		schedulers.Ask{Name: r.Scheduler, Engine: r.Engine, Nodes: in.Nodes(), Seed: r.Seed}, r.Wall)
	if err != nil {
		return Outcome{}, err
	}
	if err = in.checkPlayable(chosen); err != nil {
		return Outcome{}, err
	}
	s, err := in.scenario(r.Seed)
	if err != nil {
		return Outcome{}, err
	}
	header, err := in.head(chosen.Name, chosen.On, chosen.TieRule)
	if err != nil {
		return Outcome{}, err
	}
	tally := measure.New(s, header)
	told := &listeners{watchers: []engine.Watcher{tally}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var kept *results.Run
	var record *report.Recorder
	if r.Dir != "" {
		if kept, err = results.Create(r.Dir, s, results.Options{Card: tally.Scorecard(0), Failed: cancel}); err != nil {
			return Outcome{}, err
		}
		record = report.NewRecorder(s)
		told.watchers = append(told.watchers, kept, record)
	}
	if r.Progress != nil {
		shown := r.Progress.Watch(r.Name, s)
		defer shown.Done()
		told.watchers = append(told.watchers, shown)
	}
	began := r.Wall.Now()
	failed := chosen.Engine.Run(ctx, s, told)
	out := tallied(tally, tally.Scorecard(r.Wall.Since(began)))
	out.Bounds = bound.Of(s)
	if failed != nil {
		out.Card.Partial = why(ctx, failed, told.at)
	}
	if kept != nil {
		err = kept.Finish(out.Card, page(out, record))
	}
	return out, errors.Join(cause(ctx, failed), err)
}

// why explains in a line why a run has no end.
func why(ctx context.Context, failed error, at time.Duration) string {
	return fmt.Sprintf("ended after %s of virtual time: %s", at, cause(ctx, failed))
}

// cause prefers the reason for which the context ended to the error that followed from it.
func cause(ctx context.Context, failed error) error {
	if reason := context.Cause(ctx); failed != nil && reason != nil {
		return reason
	}
	return failed
}

// listeners receive events one after the other.
type listeners struct {
	watchers []engine.Watcher
	// at is the instant of the last event.
	at time.Duration
}

// Happens notifies all.
func (l *listeners) Happens(e engine.Event) {
	l.at = e.At
	for _, w := range l.watchers {
		w.Happens(e)
	}
}

// Decides notifies all.
func (l *listeners) Decides(d engine.Decision) {
	for _, w := range l.watchers {
		w.Decides(d)
	}
}
