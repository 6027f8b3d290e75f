// Package gates holds the product to what it has achieved. Eight small contended contests are played in virtual time and compared with
// committed results, so that a change of the scheduler shows what it wins and what it costs, and fails if it costs too much.
package gates
