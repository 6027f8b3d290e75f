// Package baseline has the placements that Lockstep is compared with, by the names under which lockstep compare knows them:
// what kube-scheduler's scores choose, what Kueue and Slurm choose, and two that nobody would ship.
//
//	policy, err := baseline.New("kueue-bestfit", seed)
//	nodes, ok := policy.Place(ledger, gang)
//
// # What holds for all
//
// A placement is for all members or for none. It takes no more of a node than the ledger says is free, and respects what bars a
// shape from a node. The ledger is not changed. Equal ledgers, gangs and seeds give equal placements, on every machine,
// whatever was asked before. Members that are placed already stay where they are.
//
// Capacities are in the order of Scenario.Resources (package scenario): pods, milli-CPU, bytes of memory, accelerators.
//
// # What is not modeled
//
// Of a gang's rules, each policy knows those that its original knows, and its comment says so; the others are not looked at,
// and show up as violations of the run. None knows spreads, spares, members per node, fewer members than all, or devices.
// Preemption is not theirs to decide.
package baseline
