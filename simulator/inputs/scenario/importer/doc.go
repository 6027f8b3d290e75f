// Package importer reads fleets, traces and snapshots into a scenario. Equal inputs give equal scenarios on every
// machine.
//
//	s, err := importer.New(fleet, trace, scenario.Options{Seed: 1, Load: 1.3})
//	s, err = importer.FromSnapshot(&snapshot, &trace, scenario.Options{DefaultRunTime: time.Hour})
//
// The scenario has numbers only. The API objects that it was read from are in its field Objects, see ObjectsOf.
//
// # Fleets and traces
//
// Instants and durations are whole seconds, as in the API: submissions are rounded, durations rounded up. GPUs of a
// trace are the accelerators of the fleet, whatever their resource is called. Of a fleet with several kinds, the kind
// that most nodes have is counted. A node's accelerators are counted whether the node lists them as capacity or
// publishes them as devices; occupied devices are left out. A pod that requests more accelerators than any node has is
// divided into several that request a whole node, with a line in Notes. Nodes that are cordoned, under maintenance, or
// have a taint that is not about accelerators, are closed.
//
// # Snapshots
//
// The scenario begins when the snapshot was taken. Each gang and each single pod with a node becomes one Running, which
// holds its pods' requests. It ends at the instant in the annotation of its PodGroup, or at the deadline of its pods.
// Without either it never ends; services are not meant to. A pod that is being deleted holds its node until the end of
// its grace period.
//
// Whole gangs and single pods without nodes become jobs that arrive at the beginning, with the constraints, selectors
// and tolerations that the scheduler reads. They run for their declared time, or for Options.DefaultRunTime. A gang
// that is gated or lacks members is skipped, and a gang with only some running members continues without the others.
// Members that are announced for later start with the others. Constraints that only filters of the scheduler know
// (volumes, host ports, pod affinity) are ignored.
//
// Claimed devices are counted as accelerators: whole ones that claims hold or request. Parts of accelerators and other
// devices are not counted. A node with a taint that a waiting pod tolerates is open to that pod's job and barred to all
// others.
package importer
