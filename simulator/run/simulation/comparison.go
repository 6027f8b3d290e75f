package simulation

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/inputs/badinput"
	"github.com/lockstep-project/lockstep/simulator/policy/openb"
	"github.com/lockstep-project/lockstep/simulator/policy/schedulers"
	"github.com/lockstep-project/lockstep/simulator/score/bound"
	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/progress"
	"github.com/lockstep-project/lockstep/simulator/score/results"
)

// Comparison is several schedulers that play the same: for each seed all of them get the same scenario, so runs are
// paired.
type Comparison struct {
	// Schedulers and Seeds are each named once; the first scheduler is the one that the others are compared with.
	// Engine is as in Run.
	Schedulers []string
	Seeds      []uint64
	Engine     string
	// Fewer is the number of seeds, the first ones, that a scheduler plays; those that are not named play all.
	Fewer map[string]int
	// Dir has a directory of results for each run; empty for none. A run that is there already, whole and of the same
	// commit and configuration, is not played again.
	Dir string
	// Cards has runs with nothing but a stored scorecard, and stores that of each run; nil for none.
	Cards    CardStore
	Progress *progress.Progress
	Wall     clock.PassiveClock
}

// CardStore stores scorecards of runs, by the names that RunName gives. Keep replaces an existing one.
type CardStore interface {
	Find(name string) (measure.Scorecard, bool)
	Keep(name string, card measure.Scorecard) error
}

// Compare plays all runs, scheduler by scheduler for each seed, and returns the outcomes in that order; only those of
// the first seed include the outcomes of jobs. If it is interrupted, or a result cannot be written, the outcomes are
// those of the runs before.
func (in *Input) Compare(ctx context.Context, c Comparison) ([]Outcome, error) {
	if err := in.Check(c); err != nil {
		return nil, err
	}
	var outcomes []Outcome
	for i, seed := range c.Seeds {
		for _, scheduler := range c.Schedulers {
			if most, some := c.Fewer[scheduler]; some && i >= most {
				continue
			}
			name := RunName(scheduler, seed)
			run := Run{
				Scheduler: scheduler, Engine: c.Engine, Seed: seed, Progress: c.Progress, Name: name, Wall: c.Wall,
			}
			if c.Dir != "" {
				run.Dir = filepath.Join(c.Dir, name)
			}
			outcome, err := in.runOnce(ctx, run, c.Cards)
			if err != nil {
				return outcomes, fmt.Errorf("playing %s: %w", name, err)
			}
			if i > 0 {
				outcome.Jobs, outcome.Series = nil, measure.Series{}
			}
			outcomes = append(outcomes, outcome)
		}
	}
	return outcomes, in.bind(outcomes)
}

// bind adds the bounds to outcomes of the first scheduler with a stored scorecard only: WithBounds reads those of no
// other.
func (in *Input) bind(outcomes []Outcome) error {
	for i := range outcomes {
		o := &outcomes[i]
		if o.Card.Scheduler != outcomes[0].Card.Scheduler || o.Bounds != (bound.Bounds{}) {
			continue
		}
		var err error
		if o.Bounds, err = in.Bounds(o.Card.Seed); err != nil {
			return err
		}
	}
	return nil
}

// RunName returns the name of a scheduler's run with a seed, and of its directory.
func RunName(scheduler string, seed uint64) string {
	return strings.ReplaceAll(scheduler, ":", "-") + "-" + strconv.FormatUint(seed, 10)
}

// Check refuses a comparison that cannot be played, before anything is.
func (in *Input) Check(c Comparison) error {
	if len(c.Schedulers) == 0 || len(c.Seeds) == 0 {
		return &badinput.Error{What: "there are no schedulers to compare", Mend: "name --schedulers, and --seeds"}
	}
	for i, name := range c.Schedulers {
		if slices.Contains(c.Schedulers[:i], name) {
			return &badinput.Error{Where: "--schedulers", What: name + " is named twice", Mend: "name it once"}
		}
		if err := in.checkScheduler(name, c.Engine, c.Wall); err != nil {
			return err
		}
	}
	for i, seed := range c.Seeds {
		if slices.Contains(c.Seeds[:i], seed) {
			return &badinput.Error{
				Where: "--seeds", What: fmt.Sprintf("%d is named twice", seed),
				Mend: "name it once: equal seeds give equal runs",
			}
		}
	}
	return nil
}

// checkScheduler refuses a scheduler that cannot play these inputs.
func (in *Input) checkScheduler(name, engine string, wall clock.PassiveClock) error {
	if in.Shared() {
		return openb.CheckPolicy(name)
	}
	chosen, err := schedulers.Open(schedulers.Ask{Name: name, Engine: engine, Nodes: in.Nodes()}, wall)
	if err != nil {
		return err
	}
	return in.checkPlayable(chosen)
}

// checkPlayable refuses options that the scheduler's engine cannot play.
func (in *Input) checkPlayable(chosen schedulers.Scheduler) error {
	if chosen.Name == schedulers.Lockstep && chosen.On == schedulers.Kube && in.options.Costs.Replace {
		return &badinput.Error{
			Where: "--on-disruption replace",
			What:  "the engine kube restarts gangs as a whole: it has no controller that replaces pods",
			Mend:  "leave out --engine, or write --on-disruption restart",
		}
	}
	return nil
}

// runOnce plays a run unless its result is there, or its scorecard.
func (in *Input) runOnce(ctx context.Context, run Run, cards CardStore) (Outcome, error) {
	if run.Dir != "" {
		if result := in.found(run); result != nil {
			return in.recall(result)
		}
	}
	if cards == nil {
		return in.Run(ctx, run)
	}
	if card, ok := cards.Find(run.Name); ok && in.repeats(run, card) {
		return Outcome{Card: card}, nil
	}
	outcome, err := in.Run(ctx, run)
	if err == nil {
		err = cards.Keep(run.Name, outcome.Card)
	}
	return outcome, err
}

// found is the result of an earlier run that this one would give again, nil if there is none.
func (in *Input) found(run Run) *results.Result {
	earlier, err := results.Open(run.Dir)
	if err != nil || !in.repeats(run, earlier.Card) {
		return nil
	}
	return earlier
}

// repeats reports whether a run would give a scorecard again. One of a changed or unknown commit proves nothing.
func (in *Input) repeats(run Run, card measure.Scorecard) bool {
	hash, err := in.hash(card.Scheduler, card.Engine)
	return err == nil && card.ConfigHash == hash && card.Partial == "" &&
		card.Commit == in.commit && isCommit(card.Commit) &&
		card.Scheduler == run.Scheduler && card.Seed == run.Seed &&
		(run.Engine == "" || card.Engine == run.Engine)
}

// recall replays a stored result into a tally.
func (in *Input) recall(result *results.Result) (Outcome, error) {
	if in.Shared() {
		return Outcome{Card: result.Card}, nil
	}
	s, err := in.scenario(result.Card.Seed)
	if err != nil {
		return Outcome{}, err
	}
	tally := measure.New(s, measure.Header{})
	for event, err := range result.Events() {
		if err != nil {
			return Outcome{}, err
		}
		tally.Happens(event)
	}
	out := tallied(tally, result.Card)
	out.Bounds = bound.Of(s)
	return out, nil
}

// Bounds returns the lower bounds of a seed for any scheduler, zero for openb.
func (in *Input) Bounds(seed uint64) (bound.Bounds, error) {
	if in.Shared() {
		return bound.Bounds{}, nil
	}
	s, err := in.scenario(seed)
	if err != nil {
		return bound.Bounds{}, err
	}
	return bound.Of(s), nil
}

// WithBounds returns a table of outcomes with the bounds of the first scheduler's runs, which has played all seeds.
func WithBounds(table compare.Table, outcomes []Outcome) compare.Table {
	sums, seeds := make(map[string]float64), 0
	for _, o := range outcomes {
		if o.Card.Scheduler != outcomes[0].Card.Scheduler || o.Bounds == (bound.Bounds{}) {
			continue
		}
		seeds++
		for name, value := range o.Bounds.Values() {
			sums[name] += value
		}
	}
	for name := range sums {
		sums[name] = measure.Tidy(sums[name] / float64(seeds))
	}
	return table.Bounded(sums)
}

// isCommit reports whether the text names one state of the code.
func isCommit(commit string) bool {
	return commit != "unknown" && commit[len(commit)-1] != '+'
}
