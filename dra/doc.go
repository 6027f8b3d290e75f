// Package dra computes the number of pods with the same claims that a node's devices can still serve and, if none, the
// reason. It computes values from values. Kubernetes' structured allocator assigns the devices themselves; nothing here
// does.
//
// The words:
//
//   - An Inventory holds the published ResourceSlices, by node. It is changed slice by slice and node by node.
//   - A Ledger holds the devices that ResourceClaims have taken. A Branch of it answers what-ifs: without the claims of
//     victims, with claims that are about to be allocated.
//   - A Demand holds a pod's request: its claims that are not allocated yet, read together with their device classes.
//     If it cannot be evaluated, Demand.Fault gives the reason in one sentence: its gang waits, no other is affected.
//   - A Fitter answers questions. It caches answers by the class of a node, which is all that a demand can read of it,
//     so that thousands of nodes are evaluated as tens of classes.
//   - A Fit is the answer: the number of pods, and the reason why the next one does not fit.
//   - Confirm runs the allocator itself for a node and returns its results. They are assumed in the given ledger only.
//   - Choices are the devices that a claim shared by all members of a gang could be given, and the nodes that reach each.
//   - Capacity puts Fits into the numbers of package topology.
//
// Use in a scheduler plugin: update one Inventory and one Ledger from the informers (slices as upstream's tracker lists
// them, DeviceTaintRules applied); read each member's claims with ReadPod; add Capacity's columns to the topology
// ledger and shapes; plan. The in-tree plugin assigns the devices on the planned nodes; if it refuses one, bar that
// node and plan again. Where no such plugin runs, as in what-if questions, Confirm assigns them. For preemption,
// evaluate the same with Ledger.WithoutClaims(those of the victims).
//
// An Inventory, a Ledger that is being changed and a Fitter each belong to one goroutine at a time.
package dra
