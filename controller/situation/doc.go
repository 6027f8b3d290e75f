// Package situation says what a TrainJob does, where it is and what it waits for, from what is known of it: the status field
// scheduling, and the Events that follow from a change of it. It is pure.
package situation
