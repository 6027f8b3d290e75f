// Package experiment plays one workload on one fleet with one scheduler and a seed, and passes the events to all
// consumers: the scorecard, the results directory, the terminal. Workloads of gangs are played by engines in virtual
// time, openb's pods that share GPUs by package openb; a caller treats both the same.
//
//	input, err := experiment.Open(experiment.Names{Fleet: "c3", Trace: "philly"}, experiment.Options{Load: 1.3})
//	card, err := input.Run(ctx, experiment.Run{Scheduler: "lockstep", Seed: 1, Dir: "out", Wall: clock})
package experiment
