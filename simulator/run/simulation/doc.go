// Package simulation plays one workload on one fleet with one scheduler and a seed, and passes the events to all
// consumers: the scorecard, the results directory, the terminal. Workloads of gangs are played by engines in virtual
// time, openb's pods that share GPUs by package openb; a caller treats both the same.
//
//	input, err := simulation.Open(simulation.Names{Fleet: "c3", Trace: "philly"}, simulation.Options{Load: 1.3})
//	card, err := input.Run(ctx, simulation.Run{Scheduler: "lockstep", Seed: 1, Dir: "out", Wall: clock})
package simulation
