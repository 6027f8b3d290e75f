package benchmark

import (
	"fmt"

	"github.com/lockstep-project/lockstep/simulator/run/simulation"
)

// take adds a comparison with the seeds that all schedulers have played by its ledger, or else its name to those that
// are missing.
func (d *Document) take(o Options, e entry) error {
	kept, err := openLedger(o.Cards, e.name)
	if err != nil {
		return err
	}
	planned := len(e.seeds)
	e.seeds = e.seeds[:e.whole(kept)]
	if len(e.seeds) == 0 || kept.commit() == "" {
		d.missing = append(d.missing, e.name)
		return nil
	}
	if len(e.seeds) < planned {
		d.short = append(d.short, fmt.Sprintf("%s %d of %d", e.name, len(e.seeds), planned))
	}
	input, err := simulation.Open(e.names, e.options)
	if err != nil {
		return err
	}
	c := comparison{entry: e}
	for _, seed := range e.seeds {
		bounds, err := input.Bounds(seed)
		if err != nil {
			return err
		}
		for _, scheduler := range e.playing(seed) {
			card, _ := kept.Find(simulation.RunName(scheduler, seed))
			c.outcomes = append(c.outcomes, simulation.Outcome{Card: card, Bounds: bounds})
		}
	}
	if err = c.compare(); err != nil {
		return err
	}
	d.comparisons = append(d.comparisons, c)
	return nil
}

// whole returns the number of leading seeds that have the scorecards of all schedulers that play them.
func (e *entry) whole(kept *ledger) int {
	for i, seed := range e.seeds {
		for _, scheduler := range e.playing(seed) {
			if _, ok := kept.Find(simulation.RunName(scheduler, seed)); !ok {
				return i
			}
		}
	}
	return len(e.seeds)
}
