// Package rerun holds the simulator to what real components do: the same workload, on the same fleet, once on the embedded cluster
// (etcd, kube-apiserver, kube-controller-manager, JobSet, KWOK, lockstep-controller and lockstep-scheduler) and once in virtual time.
//
//	plan := rerun.Draw(rerun.Burst, 7)           // what is submitted: the seed decides
//	recorder.Runs()                                  // what happened: who was whole, bound, over, and when
//	s, err := rerun.Scene(machines, plan, record)  // the same arrivals and run times, for the engines
//	c := rerun.Compare(…)                          // who went elsewhere, who overtook whom, who waited longer
//
// # What is input, and what is compared
//
// Inputs are reality's: the instants at which gangs became whole (all pods exist), how long each held its room, at which instants
// nodes went and came back, and in which second each TrainJob was created, by which the queue is ordered. Domains, nodes, the order
// of the starts and the waits are the engine's own, from the first start to the last: nothing is put right in between.
//
// Instants of scenarios are whole seconds. Here one of them stands for a millisecond.
package rerun
