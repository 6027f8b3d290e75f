// Package schedulers lists the schedulers that can play a scenario: Lockstep, the native scheduler, and the placements
// with which both are compared. Each is an engine with its description.
package schedulers
