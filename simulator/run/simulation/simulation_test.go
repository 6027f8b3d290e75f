package simulation_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/run/simulation"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/results"
)

const commit = "0123456789ab"

func open(t *testing.T, commit string, o simulation.Options) *simulation.Input {
	t.Helper()
	input, err := simulation.Open(simulation.Names{Fleet: "knavigator-32", Trace: "knavigator-53"}, o)
	if err != nil {
		t.Fatal(err)
	}
	input.BuiltFrom(commit)
	return input
}

// A comparison resumes where it was interrupted: complete runs are not played again, unless the code or the configuration
// changed.
func TestComparison_ResumesWhereInterrupted(t *testing.T) {
	dir := t.TempDir()
	comparison := simulation.Comparison{
		Schedulers: []string{"lockstep", "slurm-block"}, Seeds: []uint64{1, 2}, Dir: dir, Wall: clock.RealClock{},
	}
	play := func(input *simulation.Input) []simulation.Outcome {
		t.Helper()
		outcomes, err := input.Compare(t.Context(), comparison)
		if err != nil {
			t.Fatal(err)
		}
		return outcomes
	}
	mark := filepath.Join(dir, "lockstep-1", "report.html")
	// again plays the comparison after the report of a run was removed, and reports whether that run was played.
	again := func(input *simulation.Input) ([]simulation.Outcome, bool) {
		t.Helper()
		if err := os.Remove(mark); err != nil {
			t.Fatal(err)
		}
		outcomes := play(input)
		_, err := os.Stat(mark)
		if err != nil { // for the next time
			if err := os.WriteFile(mark, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return outcomes, err == nil
	}
	first := play(open(t, commit, simulation.Options{}))
	second, played := again(open(t, commit, simulation.Options{}))
	if played {
		t.Error("a run that was whole was played again")
	}
	if len(second) != 4 || !reflect.DeepEqual(first[0].Jobs, second[0].Jobs) || len(first[0].Jobs) != 53 {
		t.Error("what became of jobs is not what was written down")
	}
	if first[0].Card.Gangs != second[0].Card.Gangs || second[3].Card.Seed != 2 || second[3].Jobs != nil {
		t.Errorf("the runs that were found are others: %+v", second[3].Card)
	}
	if _, played := again(open(t, "another", simulation.Options{})); !played {
		t.Error("a run of another commit was believed")
	}
	if _, played := again(open(t, "another", simulation.Options{Load: 2})); !played {
		t.Error("a run of another load was believed")
	}
	for _, unsure := range []string{"unknown", commit + "+"} {
		play(open(t, unsure, simulation.Options{}))
		if _, played := again(open(t, unsure, simulation.Options{})); !played {
			t.Errorf("a run of commit %s was believed", unsure)
		}
	}
}

// kept is a store of scorecards, and the number of those stored.
type kept struct {
	cards map[string]measure.Scorecard
	n     int
}

func (k *kept) Find(name string) (measure.Scorecard, bool) {
	card, ok := k.cards[name]
	return card, ok
}

func (k *kept) Keep(name string, card measure.Scorecard) error {
	k.cards[name], k.n = card, k.n+1
	return nil
}

// Scorecards of the same commit and configuration are enough for another machine to resume a comparison, bounds included.
func TestComparison_GoesOnFromScorecards(t *testing.T) {
	store := &kept{cards: make(map[string]measure.Scorecard)}
	comparison := simulation.Comparison{
		Schedulers: []string{"lockstep", "slurm-block"}, Seeds: []uint64{1, 2}, Cards: store, Wall: clock.RealClock{},
	}
	var first []simulation.Outcome
	for i, step := range []struct {
		commit string
		keeps  int
	}{{commit, 4}, {commit, 0}, {"another", 4}, {commit + "+", 4}, {commit + "+", 4}} {
		store.n = 0
		outcomes, err := open(t, step.commit, simulation.Options{}).Compare(t.Context(), comparison)
		if err != nil {
			t.Fatal(err)
		}
		if store.n != step.keeps {
			t.Errorf("step %d, commit %s: %d runs were played, want %d", i, step.commit, store.n, step.keeps)
		}
		if i == 0 {
			first = outcomes
			continue
		}
		for j, o := range outcomes {
			if o.Card.Gangs != first[j].Card.Gangs || o.Card.Scheduler != first[j].Card.Scheduler {
				t.Errorf("step %d: outcome %d is another", i, j)
			}
			if o.Card.Scheduler == "lockstep" && o.Bounds != first[j].Bounds {
				t.Errorf("step %d: the bounds of outcome %d are %+v, want %+v", i, j, o.Bounds, first[j].Bounds)
			}
		}
	}
}

// An interrupted run leaves a result that says so, and is played again.
func TestRun_InterruptedIsPartial(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("somebody pulled the plug")
	cancel(why)
	run := simulation.Run{Scheduler: "lockstep", Seed: 1, Dir: dir, Wall: clock.RealClock{}}
	outcome, err := open(t, commit, simulation.Options{}).Run(ctx, run)
	if !errors.Is(err, why) || !strings.Contains(outcome.Card.Partial, "plug") {
		t.Errorf("error %v, and the card says %q", err, outcome.Card.Partial)
	}
	result, err := results.Open(dir)
	if err != nil || !strings.Contains(result.Card.Partial, "plug") {
		t.Errorf("error %v, and the result says %+v", err, result)
	}
}
