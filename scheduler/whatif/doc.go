// Package whatif answers what the scheduler would do with a cluster: why a gang waits and for which others, where it would start, what it
// would preempt, what one more gang would change, and what the drain of some nodes would displace.
//
// A WhatIf is made from API objects and an instant: a snapshot file or a live cluster. It drives the same queue (package waiting) as the
// plugins, and has no rules of its own: entities are evaluated in the machine's order, placed members are put on their nodes, victims
// are taken off and wait again, until no entity has to be evaluated. Time stands still meanwhile. No question changes the objects.
//
// What only the framework's filters know (volumes, host ports, rules between pods) is not evaluated. A gang that fits here may be refused
// there; the conditions of its pods say so then. Leases that the scheduler has now are unknown here, too: those of an answer are the ones
// that it would grant at that instant.
package whatif
