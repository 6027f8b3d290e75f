// Package rerun compares the simulator with real components: the same workload, on the same fleet, once on the embedded
// cluster (etcd, kube-apiserver, kube-controller-manager, JobSet, KWOK, lockstep-controller and lockstep-scheduler) and
// once in virtual time.
//
//	plan := rerun.Draw(rerun.Burst, 7)           // the submissions, drawn from the seed
//	recorder.Runs()                                  // the events: each gang's instants of being whole, bound and over
//	s, err := rerun.Scene(machines, plan, record)  // the same arrivals and run times, for the engines
//	c := rerun.Compare(…)                          // the differences in domains, in order and in waits
//
// # Inputs and comparisons
//
// Inputs are reality's: the instants at which gangs became whole (all pods exist), the time that each held its room,
// the instants at which nodes left and returned, and the second in which each TrainJob was created, by which the queue
// is ordered. Domains, nodes, the order of the starts and the waits are the engine's own, from the first start to the
// last: nothing is corrected in between.
//
// Instants of scenarios are whole seconds. Here one of them stands for a millisecond.
package rerun
