// Package measure makes a scorecard of what an engine tells about a scene: waits, quality of placements, use of the accelerators,
// fragmentation, what preemption cost, broken rules, and the speed of decisions. Definitions are those of the field
// `Definitions` explains; virtual time and wall time are never in one number.
package measure
