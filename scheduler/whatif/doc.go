// Package whatif answers what the scheduler would do with a cluster as it is: why a gang waits and for whom, where it would go,
// whom it would preempt, what one more gang would change, and whom the drain of some nodes would displace.
//
// A WhatIf is made from API objects and an instant, by whoever has them: a snapshot file or a live cluster. It asks the same
// functions as the plugins (snapshot, decision, victims) in the order in which the scheduler would ask them. It knows no client
// and no clock, and nothing is changed by a question: each plays the queue through on a stage of its own.
//
// What it cannot know is what only the framework's filters do: volumes, host ports, rules between pods, devices. A gang that fits
// here may be refused there; its pods' conditions say so then.
package whatif
