// Package direct plays a queue in virtual time: gangs arrive, wait, start, are preempted and end. It drives
// contention.Machine and has no rules of its own. It has no Kubernetes either: no pod, no informer, no clock. Equal
// scenes give equal events.
//
//	result, err := direct.Run(scene, direct.Options{Preempt: true}, func(e direct.Event) { … })
//
// At each instant units end first, then nodes fail, are drained or return, then jobs arrive. Rounds of the machine
// follow until it comes to rest. The instants that the machine names (Rechecks) are played like all others. Instants
// are seconds since 1970, or since any other moment that the caller chooses; durations are seconds.
//
// NewEngine plays scenarios and reports the events that all engines share. Options.Policy places gangs by another
// scheduler's placement. A topology.Book holds the free capacity, so that an evaluation does not look at every node;
// contention.Units holds the running units.
package direct
