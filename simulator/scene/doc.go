// Package scene puts a cluster and a workload together into one value that every engine can play: nodes by their number in the
// topology tree, jobs as gangs, what runs, and what happens to nodes. Equal inputs give equal scenes on every machine.
//
//	s, err := scene.New(fleet, trace, scene.Options{Seed: 1, Load: 1.3})
//	s, err = scene.FromSnapshot(&snapshot, &trace, scene.Options{Unsaid: time.Hour})
//
// # What is made of the inputs
//
// Instants and durations are whole seconds, as in the API: submissions are rounded, durations rounded up. GPUs of a trace are the
// accelerators of the fleet, whatever their resource is called; of a fleet with several kinds those are counted that most nodes
// have. A node's accelerators are counted, whether it lists them as capacity or publishes them as devices; devices that are
// occupied are not there. A pod that asks for more accelerators than any node has is divided into several that ask for a whole
// node, and Notes says so. Nodes that are cordoned, under maintenance, or have a taint that is not about accelerators, are closed.
//
// # What is made of a snapshot
//
// A scene begins when the snapshot was taken. What runs is one for each gang and each single pod, holds what its pods ask for, and
// ends when the annotation of its PodGroup or the deadline of its pods says; of what nobody says so it never ends, and services
// are not meant to. A pod that is being deleted holds its node until its grace is over, and then has ended.
//
// What waits are jobs that come at the beginning: whole gangs and single pods that the scheduler would look at, with the wishes,
// selectors and tolerations that it would read. They run as long as they say, or Options.Unsaid. A gang that is gated or lacks
// members is not played, and one that runs without some of its members runs on without them; members that are announced for later
// start with the others. What only filters of the scheduler know (volumes, host ports, rules between pods) is not looked at.
//
// What is claimed of devices is counted as accelerators: whole ones that claims hold or ask for. Parts of accelerators and other
// devices are not counted. A node with a taint that somebody who waits tolerates is open to that job and barred to all others.
package scene
