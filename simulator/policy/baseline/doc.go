// Package baseline has the placements that Lockstep is compared with, by the names under which lockstep compare knows
// them: those of kube-scheduler's scores, of Kueue and of Slurm, and two extremes that are not meant for use.
//
//	policy, err := baseline.New("kueue-bestfit", seed)
//	nodes, ok := policy.Place(ledger, gang)
//
// # Common rules
//
// A placement is for all members or for none. It takes no more of a node than is free in the ledger, and respects the
// rules that bar a shape from a node. The ledger is not changed. Equal ledgers, gangs and seeds give equal placements,
// on every machine, whatever was asked before. Members that are placed already stay where they are.
//
// Capacities are in the order of Scenario.Resources (package scenario): pods, milli-CPU, bytes of memory, accelerators.
//
// # Not modeled
//
// Of a gang's rules, each policy knows those that its original knows, and its comment lists them; the others are
// ignored, and show up as violations of the run. None knows spreads, spares, members per node, fewer members than all,
// or devices. Preemption is not theirs to decide.
package baseline
