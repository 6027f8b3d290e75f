package benchmark

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/lockstep-project/lockstep/simulator/run/simulation"
	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/compare/criteria"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
	"github.com/lockstep-project/lockstep/simulator/score/progress"
)

// Options configure how the benchmark is played.
type Options struct {
	// Dir is the directory in which results are stored, and found again.
	Dir string
	// Cards is the folder of the committed scorecards, a file for each comparison, so that another machine resumes; empty
	// for none.
	Cards string
	// Seeds is the largest number of seeds that a comparison plays; 0 for all of the plan.
	Seeds int
	// Quick plays the first jobs only, with one seed.
	Quick bool
	// Shared is the folder with all of openb's lists; Committed has three of them, compressed.
	Shared, Committed string
	// Only is the name of a comparison to play alone; empty for all.
	Only string
	// Part, from 1, of Parts plays every so many-th comparison alone, so that several processes share a benchmark; 0 for
	// all.
	Part, Parts int
	// Found plays nothing, and takes the comparisons that are there whole, whatever commit they are of.
	Found    bool
	Progress *progress.Progress
	Wall     clock.PassiveClock
	// Say receives progress lines.
	Say func(line string)
}

// comparison is an entry that was played.
type comparison struct {
	entry

	// table has the marks of the document's table, targets those of the cells that criteria ask about.
	table, targets compare.Table

	outcomes []simulation.Outcome
	took     time.Duration
}

// Document holds the results of a benchmark, ready to be written.
type Document struct {
	quick       bool
	comparisons []comparison
	// missing are the names of comparisons that were not played.
	missing []string
	// short lists comparisons that were played with fewer seeds than planned, with the numbers of seeds.
	short []string
}

// Play plays the remaining runs. An interrupted benchmark is an error, and resumes when it is played again.
func Play(ctx context.Context, o Options) (Document, error) {
	document := Document{quick: o.Quick}
	entries, err := entries(o)
	if err != nil {
		return document, err
	}
	for i, e := range entries {
		if o.Only != "" && o.Only != e.name || o.Parts > 0 && i%o.Parts != o.Part-1 {
			continue
		}
		if o.Found {
			if err := document.take(o, e); err != nil {
				return document, err
			}
			continue
		}
		if o.Seeds > 0 {
			e.seeds = e.seeds[:min(o.Seeds, len(e.seeds))]
		}
		played, err := o.play(ctx, e)
		if err != nil {
			return document, fmt.Errorf("comparison %s: %w", e.name, err)
		}
		o.Say(fmt.Sprintf("%s: %d runs, %s", e.name, len(played.outcomes), played.took.Round(time.Second)))
		document.comparisons = append(document.comparisons, played)
	}
	return document, nil
}

// entries are the comparisons, openb's as far as its lists are there.
func entries(o Options) ([]entry, error) {
	all := plan()
	if o.Quick {
		all = quick()
	}
	for _, list := range lists() {
		everywhere := []entry{shared(o.Committed, list, ".gz")}
		if !o.Quick { // three lists are committed, and enough for a quick look
			everywhere = append(everywhere, shared(o.Shared, list, ""))
		}
		for _, e := range everywhere {
			_, err := os.Stat(e.names.Trace[len("openb:"):])
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("looking for openb's lists: %w", err)
			}
			all = append(all, e)
			break
		}
	}
	return all, nil
}

// play plays one comparison.
func (o Options) play(ctx context.Context, e entry) (comparison, error) {
	began := o.Wall.Now()
	input, err := simulation.Open(e.names, e.options)
	if err != nil {
		return comparison{}, err
	}
	played := simulation.Comparison{
		Schedulers: e.all(), Seeds: e.seeds, Engine: e.engine, Fewer: e.fewer(), Dir: filepath.Join(o.Dir, e.name),
		Progress: o.Progress, Wall: o.Wall,
	}
	if o.Cards != "" {
		if played.Cards, err = openLedger(o.Cards, e.name); err != nil {
			return comparison{}, err
		}
	}
	outcomes, err := input.Compare(ctx, played)
	if err != nil {
		return comparison{}, err
	}
	out := comparison{entry: e, outcomes: outcomes, took: o.Wall.Since(began)}
	if err = out.compare(); err != nil {
		return comparison{}, err
	}
	if len(outcomes[0].Jobs) > 0 { // a scorecard alone has nothing about jobs
		_, err = simulation.WriteComparison(filepath.Join(o.Dir, e.name), out.table, outcomes)
	}
	for i := range out.outcomes { // a benchmark has hundreds
		out.outcomes[i] = simulation.Outcome{Card: outcomes[i].Card, Bounds: outcomes[i].Bounds}
	}
	return out, err
}

// fewer returns the number of seeds of each scheduler that plays fewer.
func (e *entry) fewer() map[string]int {
	out := make(map[string]int, len(e.few))
	for _, scheduler := range e.few {
		out[scheduler] = fewSeeds
	}
	return out
}

// compare makes the tables of a comparison that was played: marks are corrected for all cells of the document's table,
// and for those that criteria ask about.
func (c *comparison) compare() error {
	cards := simulation.Cards(c.outcomes)
	table, err := compare.Uneven(cards)
	if err != nil {
		return err
	}
	c.targets = table.CorrectedFor(criteria.Asked(roles()))
	table = simulation.WithBounds(table.Corrected(marked(cards)), c.outcomes)
	c.table, err = simulation.WithPublished(table, cards, c.names.Trace)
	return err
}

// marked are the rows of the document's table that are marked: an engine's costs only if all played in one.
func marked(cards []measure.Scorecard) []string {
	one := !slices.ContainsFunc(cards, func(c measure.Scorecard) bool { return c.Engine != cards[0].Engine })
	var names []string
	for _, c := range columns() {
		if !c.wall || one {
			names = append(names, c.name)
		}
	}
	return names
}
