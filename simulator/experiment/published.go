package experiment

import (
	"github.com/lockstep-project/lockstep/simulator/compare"
	"github.com/lockstep-project/lockstep/simulator/measure"
	"github.com/lockstep-project/lockstep/simulator/openb"
)

// WithPublished returns a table of runs in which openb's policies stand beside what was published about them for the trace. Tables
// without allocations have nothing to be held to, and stay as they are.
func WithPublished(table compare.Table, cards []measure.Scorecard, trace string) (compare.Table, error) {
	if table.Allocation == nil {
		return table, nil
	}
	published := make(map[string]compare.Spread)
	for policy, mean := range openb.Published(trace) {
		published[policy] = compare.Spread(mean)
	}
	allocation, err := compare.Allocations(cards, published)
	table.Allocation = &allocation
	return table, err
}
