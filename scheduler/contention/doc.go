// Package contention decides one turn of the queue: which waiting entity is next, whether it is placed, gets a lease on
// a place to come, preempts, or waits, and which entities are evaluated again when something changes.
//
// It is a state machine without lock, clock, client or Kubernetes type. A driver reports events (Add, Remove, Freed,
// Taken), asks which entity is next (Next), hands over the values that the evaluation reads (Snapshot) and carries out
// the actions that it returns. Equal values in equal order give equal actions.
//
//	for id, ok := m.Next(); ok; id, ok = m.Next() {
//		for _, action := range m.Turn(id, snapshot) { … }
//	}
//	for _, action := range m.Settle(snapshot) { … }
//
// Instants are seconds since any moment that the driver chooses, the same for all; capacities are those of package
// topology. The numbered rules, and the basic rules, that comments cite are those of DESIGN.md in this directory.
package contention
