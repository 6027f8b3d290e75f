package compare

import (
	"fmt"

	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// Distinct returns runs with distinct names of schedulers. Two runs of one scheduler with one seed, before a change of
// it and after, or by two engines, are given the names "NAME (ENGINE)" or, where engines are no difference, "NAME
// (COMMIT)", so that they can be compared with each other. Where names are enough, or neither engine nor commit
// distinguishes more, nothing changes.
func Distinct(cards []measure.Scorecard) []measure.Scorecard {
	for _, name := range []func(measure.Scorecard) string{
		func(c measure.Scorecard) string { return c.Scheduler },
		func(c measure.Scorecard) string { return fmt.Sprintf("%s (%s)", c.Scheduler, c.Engine) },
		func(c measure.Scorecard) string { return fmt.Sprintf("%s (%s)", c.Scheduler, short(c.Commit)) },
		func(c measure.Scorecard) string {
			return fmt.Sprintf("%s (%s, %s)", c.Scheduler, c.Engine, short(c.Commit))
		},
	} {
		if named, ok := rename(cards, name); ok {
			return named
		}
	}
	return cards
}

// rename gives runs other names, and reports whether no two of one name have one seed.
func rename(cards []measure.Scorecard, name func(measure.Scorecard) string) ([]measure.Scorecard, bool) {
	type run struct {
		name string
		seed uint64
	}
	seen, named := make(map[run]bool), make([]measure.Scorecard, len(cards))
	for i, card := range cards {
		card.Scheduler = name(card)
		key := run{card.Scheduler, card.Seed}
		if seen[key] {
			return nil, false
		}
		seen[key], named[i] = true, card
	}
	return named, true
}

// short is as much of a commit as people read.
func short(commit string) string {
	return commit[:min(len(commit), 12)]
}
