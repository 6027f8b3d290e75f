package simulation

import (
	"github.com/lockstep-project/lockstep/simulator/policy/openb"
	"github.com/lockstep-project/lockstep/simulator/score/compare"
	"github.com/lockstep-project/lockstep/simulator/score/measure"
)

// WithPublished returns a table of runs in which openb's policies stand beside their published results for the trace.
// Tables without allocations have nothing to be held to, and are unchanged.
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
