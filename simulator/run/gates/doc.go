// Package gates guards the results that the product has achieved. Eight small contended comparisons are played in virtual
// time and compared with committed results, so that a change of the scheduler shows its gains and its costs, and fails
// if it costs too much.
package gates
