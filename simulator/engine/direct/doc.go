// Package direct replays, in virtual time, who starts when and where: gangs come, wait, start, are preempted and end, and
// each decision is the production one (scheduler/decision, topology). Nothing else of the scheduler is there, and no
// Kubernetes: no pod, no informer, no clock. Equal scenes give equal events.
//
//	result, err := direct.Run(scene, direct.Options{Discipline: direct.Backfill, Preempt: true}, func(e direct.Event) { … })
//
// At each instant the gangs that end leave first, then come those that arrive, and then those that wait are asked in the
// queue's order. Nodes fail, are drained and return between the ends and the arrivals. A gang is asked again only when something
// changed that could help it. Instants are seconds since 1970, or since any other moment that the caller likes; durations are
// seconds.
//
// NewEngine is the same for scenarios and events that all engines share. With Options.Policy somebody else chooses nodes. What is free
// is in a topology.Book, so that a question does not look at every node.
package direct
