// Package measure makes a scorecard of the events that an engine reports about a scenario: waits, quality of
// placements, use of the accelerators, fragmentation, the cost of preemption, broken rules, and the speed of decisions.
//
//	tally := measure.New(s, header)
//	err := engine.Run(ctx, s, tally)
//	card := tally.Scorecard(wall)
//
// Definitions has the computation of each number; the formulas are those of the field, see metrics.md and
// placement-algorithms.md, section 4, of the laboratory's references. Virtual time and wall time are never in one
// number: of equal scenarios everything is equal, on every machine, but for decision_ms, throughput and the header.
package measure
