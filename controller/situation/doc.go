// Package situation computes the phase, the place and the wait of a TrainJob from its objects: the status field
// scheduling, and the Events that follow from a change of it. It is pure.
package situation
