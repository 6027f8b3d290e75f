// Package measure makes a scorecard of what an engine tells about a scenario: waits, quality of placements, use of the accelerators,
// fragmentation, what preemption cost, broken rules, and the speed of decisions.
//
//	tally := measure.New(s, header)
//	err := engine.Run(ctx, s, tally)
//	card := tally.Scorecard(wall)
//
// Definitions says of each number how it is computed; the formulas are those of the field, see metrics.md and
// placement-algorithms.md, section 4, of the laboratory's references. Virtual time and wall time are never in one number: of
// equal scenarios everything is equal, on every machine, but for decision_ms, throughput and the header.
package measure
