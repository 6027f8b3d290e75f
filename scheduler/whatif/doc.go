// Package whatif evaluates the scheduler's decisions about a cluster: why a gang waits and for which others, where it
// would start, which units it would preempt, and the effect of one more gang or of the drain of some nodes.
//
// A WhatIf is made from API objects and an instant: a snapshot file or a live cluster. It drives the same queue
// (package waiting) as the plugins, and has no rules of its own: entities are evaluated in the machine's order, placed
// members are put on their nodes, victims are taken off and wait again, until no entity has to be evaluated. Time
// stands still meanwhile. No question changes the objects.
//
// Rules that only the framework's filters know (volumes, host ports, rules between pods) are not evaluated. A gang that
// fits here may be refused there; the conditions of its pods say so then. Leases that the scheduler has now are unknown
// here, too: those of an answer are the ones that it would grant at that instant.
package whatif
