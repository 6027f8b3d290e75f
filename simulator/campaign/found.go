package campaign

import (
	"path/filepath"

	"github.com/lockstep-project/lockstep/simulator/experiment"
	"github.com/lockstep-project/lockstep/simulator/results"
)

// take adds a contest of which all runs are there, whole and of one commit, or else its name to those that are missing.
func (d *Document) take(o Options, e entry) error {
	c := contest{entry: e}
	for _, scheduler := range e.all() {
		for _, seed := range e.seedsOf(scheduler) {
			result, err := results.Open(filepath.Join(o.Dir, e.name, experiment.RunName(scheduler, seed)))
			if err != nil || result.Card.Partial != "" ||
				len(c.outcomes) > 0 && result.Card.Commit != c.outcomes[0].Card.Commit {
				d.missing = append(d.missing, e.name)
				return nil //nolint:nilerr // what cannot be read was not played
			}
			c.outcomes = append(c.outcomes, experiment.Outcome{Card: result.Card})
		}
	}
	input, err := experiment.Open(e.names, e.options)
	if err != nil {
		return err
	}
	for i, of := range c.outcomes[:len(e.seeds)] { // of the first scheduler
		if c.outcomes[i].Bounds, err = input.Bounds(of.Card.Seed); err != nil {
			return err
		}
	}
	if c.table, err = e.compare(c.outcomes); err != nil {
		return err
	}
	d.contests = append(d.contests, c)
	return nil
}
