// Package decision is what is decided about gangs, one after another, as functions of values: who is before whom, who is
// placed, for whom a place is kept, and who may pass. The plugins, `lockstep explain` and the simulator ask the same
// functions; none of them reads a clock, a client or a pod.
package decision
