// Package scene puts a fleet and a workload together into one value that every engine can play: nodes by their number in the
// topology tree, jobs as gangs, and what happens to nodes. Equal inputs give equal scenes on every machine.
//
//	s, err := scene.New(fleet, trace, scene.Options{Seed: 1, Load: 1.3})
//
// # What is made of the inputs
//
// Instants and durations are whole seconds, as in the API: submissions are rounded, durations rounded up. GPUs of a trace are the
// accelerators of the fleet, whatever their resource is called. A node's accelerators are counted, whether it lists them as
// capacity or publishes them as devices; devices that are occupied are not there. A pod that asks for more accelerators than
// any node has is divided into several that ask for a whole node, and Notes says so. Nodes that are cordoned, or have a
// taint that is not about accelerators, are closed.
package scene
