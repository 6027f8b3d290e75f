// Package schedulers names who can play a scenario: Lockstep, the native scheduler, and the placements that both are compared with. Each
// is an engine, and says what is to be known of it.
package schedulers
